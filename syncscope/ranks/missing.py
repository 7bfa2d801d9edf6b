"""Which ranks of a run are not among the traces that were given."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from syncscope.schema.ranks import MissingRanks
from syncscope.schema.report import TraceInfo


def find_missing_ranks(traces: Sequence[TraceInfo]) -> tuple[MissingRanks, ...]:
    """The ranks that traces lack of their runs, told apart by the number of their ranks. A trace that does not say its
    rank, or how many there are, belongs to none."""
    given: dict[int, set[int]] = {}
    first: dict[int, int] = {}
    for number, info in enumerate(traces):
        if info.rank is not None and info.world_size is not None and 0 <= info.rank < info.world_size:
            given.setdefault(info.world_size, set()).add(info.rank)
            first.setdefault(info.world_size, number)
    return tuple(
        MissingRanks(trace=first[size], world_size=size, given=len(ranks), runs=runs)
        for size, ranks in given.items()
        if (runs := _runs_between(ranks, size))
    )


def _runs_between(ranks: set[int], size: int) -> tuple[tuple[int, int], ...]:
    """The first and last of each run of numbers below ``size`` that are not in ``ranks``. A trace may name any size."""
    edges = [-1, *sorted(ranks), size]
    return tuple((before + 1, after - 1) for before, after in pairwise(edges) if after - before > 1)
