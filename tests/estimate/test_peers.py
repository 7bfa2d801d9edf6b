"""When the other ranks come to a collective, and what a fix on one rank alone then saves."""

from __future__ import annotations

import zlib

import msgspec
import numpy as np
import pytest

from syncscope import rules
from syncscope.analysis.analyze import analyze, analyze_timelines
from syncscope.estimate import Prepared, estimate_savings, prepare
from syncscope.estimate.edits import Edit
from syncscope.estimate.items import COLLECTIVE
from syncscope.estimate.peers import (
    Peer,
    SharedCollectives,
    find_shared_collectives,
    peers_to_compare,
    with_peers,
    without_late_peers,
)
from syncscope.estimate.profiler_cost import Costs
from syncscope.estimate.program import Program, compile_program
from syncscope.estimate.replay import Scenario, replay
from syncscope.timeline import Timeline
from tests.builders import TraceBuilder
from tests.rules.scenes import line

ALL_REDUCE = "ncclDevKernel_AllReduce_Sum_f32_RING_LL"
BROADCAST = "ncclDevKernel_Broadcast_RING_LL"
STEPS = 4


def rank(number: int, *lengths: float, reads: bool = True, bare: bool = False, broadcasts: bool = False) -> Timeline:
    return Timeline(drawn(number, *lengths, reads=reads, bare=bare, broadcasts=broadcasts).trace(f"rank{number}.json"))


def drawn(
    number: int, *lengths: float, reads: bool = True, bare: bool = False, broadcasts: bool = False
) -> TraceBuilder:
    """Steps of 1000 µs: 300 on the device, which the rank may wait for to work 200 on the host, 100 on the device, an
    all-reduce of one of the ``lengths`` that ends at 722, and a wait for it. A broadcast may come behind the 200."""
    builder = TraceBuilder(rank=number, world_size=3)
    for step in range(STEPS):
        at, length = 1000.0 * step, lengths[step % len(lengths)]
        builder.launch("gemm", call=(at + 3, 5), runs=(at + 10, 300))
        if reads:
            builder.op("aten::item", at + 9, 305).copy("DtoH", call=(at + 10, 2), runs=(at + 311, 1), bytes=4)
            builder.stream_sync(at + 13, 301).warning(at + 316, line(22, "loss.item()"))
        if broadcasts:
            builder.launch(BROADCAST, call=(at + 505, 5), runs=(at + 511, 3), stream=13)
        builder.launch("gemm", call=(at + 514, 5), runs=(at + 521, 622 - 521))
        builder.launch(ALL_REDUCE, call=(at + 522, 5), runs=(at + 722 - length, length), stream=13)
        builder.stream_sync(at + 530, 196, stream=13, record=True)
    marks = [1000.0 * step for step in range(STEPS + 1)]
    builder.recording(*marks, drained=marks[-1], bare_us=[1000.0] * STEPS if bare else None)
    return builder


def compiled(timeline: Timeline) -> tuple[Program, SharedCollectives]:
    program = compile_program(timeline, Costs(*[0.0] * 6))
    assert program is not None
    return program, find_shared_collectives(timeline)


def peer(timeline: Timeline, *findings: str) -> Peer:
    collectives = find_shared_collectives(timeline).with_lengths()
    return Peer(rank=timeline.info().rank or 0, findings=findings, collectives=collectives)


def later_us(one: Timeline, *others: Timeline) -> list[float]:
    program, known = with_peers(*compiled(one), [peer(other) for other in others])
    found = program.items.later[program.items.engine == COLLECTIVE] / 1000
    assert known == np.isfinite(found).any()
    return found.tolist()


def test_the_rank_that_is_in_a_collective_for_longer_came_sooner():
    assert later_us(rank(0, 100), rank(1, 60)) == pytest.approx([40] * STEPS)
    assert later_us(rank(1, 60), rank(0, 100)) == pytest.approx([-40] * STEPS)


def test_the_last_of_the_others_counts():
    assert later_us(rank(0, 80), rank(1, 100), rank(2, 50)) == pytest.approx([30] * STEPS)


def test_alone_nothing_is_known():
    assert np.isnan(later_us(rank(0, 100))).all()


def test_a_step_in_which_ranks_did_not_do_the_same_is_not_compared():
    other = peer(rank(1, 60))
    more = tuple(((*one[:3], 2, one[4]) if one[0] == 2 else one, length) for one, length in other.collectives)
    program, _ = with_peers(*compiled(rank(0, 100)), [msgspec.structs.replace(other, collectives=more)])
    assert np.isfinite(program.items.later).sum() == STEPS - 1


def test_ranks_are_compared_where_they_do_not_have_the_same_findings():
    first, second = peer(rank(0, 100), "read"), peer(rank(1, 60))
    assert peers_to_compare([first, second]) == (first, second)
    assert peers_to_compare([first, msgspec.structs.replace(second, findings=("read",))]) == ()
    assert peers_to_compare([first, msgspec.structs.replace(second, rank=0)]) == ()
    assert peers_to_compare([first]) == ()
    unfit = msgspec.structs.replace(second, findings=("read",), fits=False)
    assert peers_to_compare([first, unfit]) == (first, unfit)


def test_each_phase_of_the_ranks_is_compared_on_its_own():
    phases = [
        msgspec.structs.replace(peer(rank(number, 100), *(("read",) if number == 0 else ())), phase=phase)
        for phase in ("train", "evaluate")
        for number in (0, 1)
    ]
    assert peers_to_compare(phases) == tuple(phases)
    alike = [msgspec.structs.replace(one, findings=()) if one.phase == "evaluate" else one for one in phases]
    assert [one.phase for one in peers_to_compare(alike)] == ["train", "train"]
    assert peers_to_compare(phases[::3]) == ()


def saved_us(program: Program, *, on_one_rank: bool) -> float:
    reads = {int(item): Edit(free=True) for item in np.flatnonzero(program.items.wait)[::2]}
    order = [number % STEPS for number in range(4 * STEPS)]
    ends = replay(program, [{}, reads], [Scenario()], order, profiled=True, on_one_rank=(False, on_one_rank)).ends[
        :, :, 0
    ]
    before, after = (ends[-1] - ends[2 * STEPS - 1]) / (2 * STEPS)
    return float(before - after) / 1000


def test_a_fix_on_one_rank_alone_gains_what_the_others_waited_for_it():
    """The other rank came 60 µs sooner: it needs 940 µs from one collective to the next."""
    late, _ = with_peers(*compiled(rank(0, 100)), [peer(rank(1, 160, reads=False))])
    assert saved_us(late, on_one_rank=True) == pytest.approx(60, abs=1)
    assert saved_us(late, on_one_rank=False) == pytest.approx(210, abs=6)


def test_a_broadcast_does_not_tell_when_the_other_ranks_came():
    """Each runs it in its own time, however long the one with the loader waits before it."""
    mine, other = rank(0, 100, broadcasts=True), peer(rank(1, 160, reads=False, broadcasts=True))
    late, _ = with_peers(*compiled(mine), [other])
    assert np.isfinite(late.items.later).sum() == STEPS  # of the all-reduces
    assert saved_us(late, on_one_rank=True) == pytest.approx(60, abs=1)


def test_a_fix_on_one_rank_alone_saves_nothing_while_that_rank_waits_for_the_others():
    early, _ = with_peers(*compiled(rank(0, 160)), [peer(rank(1, 100, reads=False))])
    assert saved_us(early, on_one_rank=True) == pytest.approx(0, abs=1)


def test_nothing_changed_changes_nothing():
    program, _ = with_peers(*compiled(rank(0, 100, 140, 160)), [peer(rank(1, 120))])
    replayed = replay(program, [{}, {}], [Scenario()], profiled=True, on_one_rank=(False, True)).ends[:, :, 0] / 1000
    assert replayed[:, 0].tolist() == pytest.approx([1000.0 * step for step in range(1, STEPS + 1)], abs=1)
    assert replayed[:, 1].tolist() == pytest.approx(replayed[:, 0].tolist())


def test_without_waits_a_collective_lasts_from_when_the_last_rank_came():
    program = without_late_peers(with_peers(*compiled(rank(0, 100)), [peer(rank(1, 60))])[0])
    assert (program.items.dur[program.items.engine == COLLECTIVE] / 1000).tolist() == pytest.approx([60] * STEPS)


def test_what_was_prepared_travels_as_bytes():
    timelines = [rank(0, 100, 140, bare=True), rank(1, 160, reads=False, bare=True)]
    ranks = [prepare(timeline, rules.find(timeline)[0]) for timeline in timelines]
    peers = [one.peer for one in ranks if one.peer]
    for one in ranks:
        again = Prepared.from_bytes(one.to_bytes())
        assert again.peer == one.peer
        assert again.program is not None and one.program is not None
        assert {name: column.dtype for name, column in vars(again.program.items).items()} == {
            name: column.dtype for name, column in vars(one.program.items).items()
        }
        assert estimate_savings(again, peers) == estimate_savings(one, peers)
    with pytest.raises(zlib.error):
        Prepared.from_bytes(b"something else")
    with pytest.raises(msgspec.DecodeError):
        Prepared.from_bytes(zlib.compress(b"something else"))


def test_a_folder_of_ranks_says_the_same_as_their_timelines(tmp_path):
    ranks = [drawn(0, 100, bare=True), drawn(1, 160, reads=False, bare=True)]
    for number, builder in enumerate(ranks):
        builder.write(tmp_path / f"rank{number}.json")
    timelines = [Timeline(builder.trace(f"rank{number}.json")) for number, builder in enumerate(ranks)]
    one, other = analyze(tmp_path), analyze_timelines(timelines)
    assert [f.saving_ms_per_step for f in one.findings] == [f.saving_ms_per_step for f in other.findings]


def test_a_report_on_several_ranks_knows_whose_finding_it_is():
    def savings(*ranks: Timeline) -> list[float | None]:
        found = analyze_timelines(ranks).findings
        return [finding.saving_ms_per_step for finding in found if finding.rule == "SYN102"]

    (alone,) = savings(rank(0, 100, bare=True), rank(1, 160, reads=False, bare=True))
    both = savings(rank(0, 100, bare=True), rank(1, 160, bare=True))
    assert alone == pytest.approx(0.06, abs=0.02)
    assert len(both) == 2 and min(filter(None, both)) > 0.15
