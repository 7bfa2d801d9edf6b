"""Which ranks of a run are not among the traces that were given."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from syncscope.schema.ranks import MissingRanks
from syncscope.schema.report import TraceInfo


def find_missing_ranks(traces: Sequence[TraceInfo]) -> tuple[MissingRanks, ...]:
    """The ranks that traces lack of their runs, told apart by the number of their ranks, and phase by phase. A trace
    that does not say its rank, or how many there are, belongs to none.

    A rank that was given lacks no phase of which it recorded no window. What is missing in one phase is not listed
    again for another. Traces of other phases, and with a rank that the run cannot have, count as given: what is missing
    beside them is not that of one rank recorded alone.
    """
    given: dict[tuple[int, str | None], set[int]] = {}
    first: dict[tuple[int, str | None], int] = {}
    excused: dict[tuple[int, str | None], set[int]] = {}
    ranked = [(n, info) for n, info in enumerate(traces) if info.rank is not None and _is_one_of(info)]
    for number, info in ranked:
        given.setdefault((info.world_size or 0, info.phase), set()).add(info.rank or 0)
        first.setdefault((info.world_size or 0, info.phase), number)
    for size, phase in given:
        excused[size, phase] = {
            info.rank or 0 for _, info in ranked if info.world_size == size and _lacks_window(info, phase)
        }
    missing: dict[object, MissingRanks] = {}
    for (size, phase), ranks in given.items():
        if runs := _runs_between(ranks | excused[size, phase], size):
            named = {info.rank for info in traces if info.world_size == size and info.rank is not None}
            entry = MissingRanks(trace=first[size, phase], world_size=size, given=len(named), runs=runs)
            missing.setdefault((size, runs), entry)
    return tuple(missing.values())


def _is_one_of(info: TraceInfo) -> bool:
    return info.rank is not None and info.world_size is not None and 0 <= info.rank < info.world_size


def _lacks_window(info: TraceInfo, phase: str | None) -> bool:
    """Whether the process of a trace recorded no window of a phase, by its own account."""
    return info.run is not None and not any(one.name == phase and one.recorded for one in info.run.phases)


def _runs_between(ranks: set[int], size: int) -> tuple[tuple[int, int], ...]:
    """The first and last of each run of numbers below ``size`` that are not in ``ranks``. A trace may name any size."""
    edges = [-1, *sorted(ranks), size]
    return tuple((before + 1, after - 1) for before, after in pairwise(edges) if after - before > 1)
