"""How far clocks are apart, from recordings of one host with a clock that was moved, and from built collectives."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fixtures.ranks import RECORDED, write_rank
from syncscope.analysis.analyze import analyze
from syncscope.ranks.clocks import Meeting, compare_clocks
from syncscope.schema.ranks import RankBetween
from syncscope.schema.report import Collective, Meetings, TraceInfo
from tests.report import sample

BASE_NS = 1_790_857_026_000_000_000


def rows(*files: Path) -> tuple[RankBetween, ...]:
    between = analyze(*files).between_ranks
    assert between is not None
    return between.ranks


def test_ranks_of_one_host_have_one_clock() -> None:
    zero, one = rows(*sorted(RECORDED.iterdir()))
    assert (zero.clock_offset_ms, zero.clock_spread_ms) == (0.0, 0.0)
    assert one.clock_offset_ms == pytest.approx(0, abs=0.02)
    assert one.clock_spread_ms == pytest.approx(0, abs=0.02)


@pytest.mark.parametrize("ahead_ns", [314_159_265, -86_400_000_012_345])
def test_a_clock_that_was_moved_is_found(tmp_path: Path, ahead_ns: int) -> None:
    here = write_rank(RECORDED / "rank0.json.gz", tmp_path / "rank0.json.gz", 0, 2)
    there = write_rank(RECORDED / "rank1.json.gz", tmp_path / "rank1.json.gz", 1, 2, ahead_ns)
    unmoved = rows(*sorted(RECORDED.iterdir()))[1].clock_offset_ms
    assert unmoved is not None
    found = rows(here, there)[1]
    assert found.clock_offset_ms == pytest.approx(ahead_ns / 1e6 + unmoved, abs=1e-5)
    assert found.clock_spread_ms == pytest.approx(0, abs=0.02)


def test_moving_a_clock_changes_nothing_but_the_clock(tmp_path: Path) -> None:
    write_rank(RECORDED / "rank0.json.gz", tmp_path / "rank0.json.gz", 0, 2)
    write_rank(RECORDED / "rank1.json.gz", tmp_path / "rank1.json.gz", 1, 2, 5_000_000_000)
    moved, recorded = analyze(tmp_path), analyze(RECORDED)
    assert moved.findings == recorded.findings
    assert moved.between_ranks is not None and recorded.between_ranks is not None
    assert [row.waits_for for row in moved.between_ranks.ranks] == [
        row.waits_for for row in recorded.between_ranks.ranks
    ]


def info(rank: int, base_ns: int | None = BASE_NS) -> TraceInfo:
    met = Meetings(collectives=(Collective(step=0, name="allreduce", end_ms=1.0, ms=1.0, exposed_ms=0.0),), delays=())
    met = msgspec.structs.replace(met, base_ns=base_ns)
    return msgspec.structs.replace(sample.trace_info(f"rank{rank}.json", rank), meetings=met)


def meeting(step: int, ahead: dict[int, float], name: str = "allreduce", late: float = 0.0) -> Meeting:
    """A collective that ends at 10 ms of its step by a true clock."""
    return {
        trace: Collective(step=step, name=name, end_ms=10.0 + 100 * step + ms + late * trace, ms=1.0, exposed_ms=0.0)
        for trace, ms in ahead.items()
    }


AHEAD = {0: 0.0, 1: 250.0, 2: -3.5, 3: 0.25}


def offsets(meetings: list[Meeting], base: dict[int, int] | None = None) -> dict[int, float | None]:
    traces = {trace: info(trace, (base or {}).get(trace, BASE_NS)) for trace in AHEAD}
    return {trace: clock.offset_ms for trace, clock in compare_clocks(meetings, traces, 0).items()}


def pick(*traces: int) -> dict[int, float]:
    return {trace: AHEAD[trace] for trace in traces}


def test_ranks_that_never_meet_are_compared_by_way_of_others() -> None:
    groups = [(0, 1), (2, 3), (1, 3)]  # 0 and 2 share none
    found = offsets([meeting(step, pick(*group)) for step in range(5) for group in groups])
    assert found == {trace: pytest.approx(ms) for trace, ms in AHEAD.items()}


def test_a_rank_that_nothing_connects_has_no_clock() -> None:
    assert set(offsets([meeting(step, pick(*group)) for step in range(5) for group in [(0, 1), (2, 3)]])) == {0, 1}


def test_too_few_collectives_tell_nothing() -> None:
    assert set(offsets([meeting(step, pick(0, 1)) for step in range(2)])) == {0}


def test_collectives_that_ranks_leave_at_different_times_tell_nothing() -> None:
    late = [meeting(step, pick(0, 1), "broadcast of group 0", late=40.0) for step in range(9)]
    assert offsets(late) == {0: 0.0}
    assert offsets([*late, *(meeting(step, pick(0, 1)) for step in range(3))])[1] == pytest.approx(250.0)


def test_bases_that_differ_are_part_of_the_offset() -> None:
    found = offsets([meeting(step, pick(0, 1)) for step in range(3)], {1: BASE_NS + 2_000_000_000})
    assert found[1] == pytest.approx(2250.0)


def test_a_file_that_does_not_say_when_it_begins_has_no_clock() -> None:
    assert offsets([meeting(step, pick(0, 1)) for step in range(3)], {1: 0}) == {0: 0.0, 1: None}


@given(st.lists(st.floats(-1e6, 1e6), min_size=3, max_size=3), st.integers(0, 4))
def test_one_collective_in_five_that_goes_wrong_moves_no_clock(shifts: list[float], which: int) -> None:
    ahead = dict(enumerate([0.0, *shifts]))
    meetings = [meeting(step, ahead) for step in range(5)]
    broken = meetings[which]
    broken[1] = Collective(step=which, name="allreduce", end_ms=broken[1].end_ms + 500, ms=1.0, exposed_ms=0.0)
    assert offsets(meetings) == {trace: pytest.approx(ms, abs=1e-6) for trace, ms in ahead.items()}
