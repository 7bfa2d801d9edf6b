"""Missing ranks, phase by phase."""

from __future__ import annotations

import msgspec

from syncscope.ranks.missing import find_missing_ranks
from syncscope.schema.counting import PhaseKind
from syncscope.schema.report import TraceInfo
from syncscope.schema.run import Phase, Run
from tests.report import sample


def trace(rank: int, phase: PhaseKind | None, *recorded: PhaseKind, size: int = 4) -> TraceInfo:
    """The trace of a phase, of a rank that recorded windows of some phases."""
    phases = tuple(
        Phase(
            name=kind, kind=kind, where=None, steps=10, counted_steps=10, one_in=1.0, times=1, share=0.5, step_ms=None,
            waits_per_step=None, recorded=True,
        )
        for kind in recorded
    )  # fmt: skip
    run = Run(id="run", seconds=1.0, complete=True, stopped=False, steps=10, counted=None, phases=phases)
    return msgspec.structs.replace(sample.trace_info(rank=rank), world_size=size, phase=phase, run=run)


def missing(*traces: TraceInfo) -> list[tuple[int, int, tuple[tuple[int, int], ...]]]:
    return [(one.trace, one.given, one.runs) for one in find_missing_ranks(traces)]


def test_files_of_one_rank_and_several_phases_are_one_rank() -> None:
    both: tuple[PhaseKind, ...] = ("train", "evaluate")
    given = [trace(rank, phase, *both, size=2) for rank in (0, 1) for phase in both]
    assert missing(*given) == []


def test_a_rank_that_recorded_no_evaluation_is_not_missing_there() -> None:
    given = [trace(0, "train", "train", "evaluate", size=2), trace(0, "evaluate", "train", "evaluate", size=2)]
    assert missing(*given, trace(1, "train", "train", size=2)) == []


def test_the_file_of_a_phase_that_a_rank_recorded_is_missing() -> None:
    given = [trace(0, "train", "train", "evaluate", size=2), trace(0, "evaluate", "train", "evaluate", size=2)]
    assert missing(*given, trace(1, "train", "train", "evaluate", size=2)) == [(1, 2, ((1, 1),))]


def test_a_rank_that_the_run_cannot_have_is_given_beside_the_missing_one() -> None:
    assert missing(trace(0, "train", "train", size=2), trace(7, "train", "train", size=2)) == [(0, 2, ((1, 1),))]


def test_two_files_of_one_rank_are_one_rank_alone() -> None:
    assert missing(trace(0, "train", "train", size=2), trace(0, "train", "train", size=2)) == [(0, 1, ((1, 1),))]


def test_a_rank_without_any_file_is_missing_once() -> None:
    given = [trace(rank, phase, "train", "evaluate") for phase in ("train", "evaluate") for rank in (0, 1, 2)]
    assert missing(*given) == [(0, 3, ((3, 3),))]


def test_a_rank_that_only_counted_is_there() -> None:
    assert missing(trace(0, "train", "train", size=2), trace(1, None, size=2)) == []
