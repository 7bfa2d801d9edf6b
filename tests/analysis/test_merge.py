"""Joining reports: pure, the same in whatever grouping, every finding still at its trace."""

import itertools
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from syncscope.analysis.merge import merge
from syncscope.schema.order import ordered
from syncscope.schema.ranks import Unread
from syncscope.schema.report import Collective, Delay, Meetings, NotChecked, Report, Stale
from syncscope.schema.run import Run
from tests.report import sample


def rank(number: int) -> Report:
    stale = (Stale(rule="SYN103", where="pyproject.toml:4"), Stale(rule="SYN101", where=f"pyproject.toml:{number}"))
    return msgspec.structs.replace(
        sample.report([sample.trace_info(f"run/rank{number}.json.gz", number)], sample.findings(rank=number)),
        not_checked=(NotChecked(rule="HAZ401", why="not recorded", rank=number),),
        stale=stale,
    )


def test_findings_point_at_their_trace_in_the_joined_list() -> None:
    joined = merge([rank(0), rank(1), rank(2)])
    assert [info.rank for info in joined.traces] == [0, 1, 2]
    assert all(joined.traces[finding.trace].rank == finding.rank for finding in joined.findings)
    assert all(joined.traces[entry.trace].rank == entry.rank for entry in joined.not_checked)
    assert len(joined.findings) == 3 * len(sample.findings())


def test_processes_of_a_run_are_counted_once_however_many_phases_they_recorded() -> None:
    def of_run(number: int, run: str) -> Report:
        base = rank(number)
        known = Run(id=run, seconds=1.0, complete=True, stopped=False, steps=1, counted=None, pid=100 + number)
        return msgspec.structs.replace(base, traces=(msgspec.structs.replace(base.traces[0], run=known),))

    reports = [of_run(0, "a"), of_run(0, "a"), of_run(1, "a"), of_run(0, "b"), rank(2)]
    joined = merge(reports)
    assert [info.run and info.run.processes for info in joined.traces] == [2, 2, 2, 1, None]
    assert joined == merge([merge(reports[:2]), merge(reports[2:])])


def test_grouping_does_not_matter() -> None:
    a, b, c = rank(0), rank(1), rank(2)
    assert merge([merge([a, b]), c]) == merge([a, merge([b, c])]) == merge([a, b, c])


RANK_SETS = st.lists(
    st.tuples(
        st.one_of(st.none(), st.integers(0, 3)),  # rank
        st.lists(st.tuples(st.integers(0, 3), st.sampled_from(["allreduce", "broadcast"]), st.integers(0, 20))),
    ),
    min_size=1,
    max_size=5,
)
"""Traces as their rank and their meetings: step, kind and milliseconds; each ends on the whole second of its step."""


def met(number: int | None, meetings: list[tuple[int, str, int]]) -> Report:
    """A report of one rank that was idle before each collective for as long as the others would have to wait."""
    collectives = tuple(
        Collective(step=step, name=name, end_ms=1000.0 * step, ms=ms, exposed_ms=ms, idle_ms=(20 - ms,), delays=(0,))
        for step, name, ms in sorted(meetings)
    )
    delay = Delay(cause="wait", site=sample.findings()[0].site)
    base = sample.report([sample.trace_info("run/rank.json.gz", number)], sample.findings(rank=number))
    info = msgspec.structs.replace(base.traces[0], meetings=Meetings(collectives=collectives, delays=(delay,)))
    return msgspec.structs.replace(base, traces=(info,))


@settings(deadline=None)
@given(RANK_SETS, st.data())
def test_grouping_does_not_matter_to_who_comes_late(ranks: list[Any], data: st.DataObject) -> None:
    reports = [met(*rank) for rank in ranks]
    cut = data.draw(st.integers(0, len(reports)))
    parts = [part for part in (reports[:cut], reports[cut:]) if part]
    whole = merge(reports)
    assert merge([merge(part) for part in parts]) == merge([merge([one]) for one in reports]) == whole


def lost(path: str) -> Report:
    """A report of nothing but a trace that could not be read."""
    return Report(tool=sample.report().tool, traces=(), findings=(), unread=(Unread(path=path, why="is empty"),))


def any_tree(reports: list[Report], data: st.DataObject) -> Report:
    """The reports, merged from any two or more neighbours on, until one is left."""
    left = list(reports)
    while len(left) > 1:
        start = data.draw(st.integers(0, len(left) - 2))
        stop = data.draw(st.integers(start + 2, len(left)))
        left[start:stop] = [merge(left[start:stop])]
    return merge(left)


@settings(deadline=None)
@given(RANK_SETS, st.lists(st.integers(0, 5), max_size=3), st.data())
def test_any_tree_of_merges_gives_the_same_report(ranks: list[Any], gaps: list[int], data: st.DataObject) -> None:
    reports = [met(*rank) for rank in ranks]
    for number, gap in enumerate(gaps):
        reports.insert(gap, lost(f"run/lost{number}.json"))
    assert any_tree(reports, data).to_json() == merge(reports).to_json()


def test_what_could_not_be_read_takes_nothing_from_the_others() -> None:
    joined = merge([lost("a.json"), rank(0), lost("b.json")])
    assert [entry.path for entry in joined.unread] == ["a.json", "b.json"]
    assert (joined.traces, joined.findings) == (merge([rank(0)]).traces, merge([rank(0)]).findings)
    assert joined.saving_all_ms_per_step == 0.4
    assert joined.stale == ()


def test_who_comes_late_is_said_of_all_ranks_together() -> None:
    late, early = [(step, "allreduce", 2) for step in range(3)], [(step, "allreduce", 12) for step in range(3)]
    alone = merge([met(0, early)])
    assert "DST601" in {entry.rule for entry in alone.not_checked}
    both = merge([alone, met(1, late)])
    assert "DST601" not in {entry.rule for entry in both.not_checked}
    (found,) = [finding for finding in both.findings if finding.rule == "DST601"]
    assert (found.rank, found.trace, found.exposed_ms_per_step) == (1, 1, 10.0)
    later = merge([both, met(2, [(step, "allreduce", 1) for step in range(3)])])
    assert [finding.rank for finding in later.findings if finding.rule == "DST601"] == [2]


def test_a_straggler_that_was_expected_stays_so() -> None:
    late, early = [(step, "allreduce", 2) for step in range(3)], [(step, "allreduce", 12) for step in range(3)]
    both = merge([met(0, early), met(1, late)])
    marked = [
        msgspec.structs.replace(f, status="expected", reason="logs") if f.rule == "DST601" else f for f in both.findings
    ]
    again = merge([msgspec.structs.replace(both, findings=tuple(marked)), met(2, early)])
    assert [(f.status, f.reason) for f in again.findings if f.rule == "DST601"] == [("expected", "logs")]


def test_the_parts_are_left_alone() -> None:
    part = rank(1)
    before = part.to_json()
    merge([rank(0), part])
    assert part.to_json() == before


def test_savings_do_not_add_up_over_traces() -> None:
    assert merge([rank(0)]).saving_all_ms_per_step == 0.4
    assert merge([rank(0), rank(1)]).saving_all_ms_per_step is None


def test_only_what_is_stale_everywhere_is_stale() -> None:
    assert [entry.rule for entry in merge([rank(0), rank(1)]).stale] == ["SYN103"]


def test_nothing_to_join_is_an_error() -> None:
    with pytest.raises(ValueError, match="no reports"):
        merge([])


def test_order_is_status_then_saving_and_by_stall_where_that_is_unknown() -> None:
    base = sample.findings()[0]
    differences: tuple[dict[str, Any], ...] = (
        {"severity": "warning", "saving_ms_per_step": 3.0, "stall_ms_per_step": 5.0, "op": "a"},
        {"severity": "error", "saving_ms_per_step": None, "saving_high_ms_per_step": 2.0, "op": "b"},
        {"severity": "error", "saving_ms_per_step": 0.1, "stall_ms_per_step": 9.0, "op": "c"},
        {"severity": "warning", "saving_ms_per_step": None, "stall_ms_per_step": 5.0, "op": "d"},
        {"severity": "error", "saving_ms_per_step": None, "stall_ms_per_step": 1.0, "op": "e"},
        {"severity": "note", "saving_ms_per_step": 7.0, "op": "f"},
        {"severity": "error", "status": "baseline", "saving_ms_per_step": 7.0, "op": "g"},
        {"severity": "error", "status": "expected", "saving_ms_per_step": 8.0, "op": "h"},
    )
    unknown = dict.fromkeys(("saving_low_ms_per_step", "saving_high_ms_per_step"))
    wanted = [msgspec.structs.replace(base, **{**unknown, **changes}) for changes in differences]
    for shuffled in itertools.islice(itertools.permutations(wanted), 0, 40_320, 797):
        assert [finding.op for finding in ordered(shuffled)] == list("abcdefgh")
