"""How far the clocks of ranks are apart, by the collectives they have in common.

All ranks of a collective end it within microseconds, whatever their clocks say. So the median of the differences is
how far two clocks are apart (drift within the recorded steps is part of its spread). Ranks that share no collective
are compared by way of others. Where one rank gives and the others take, or the other way round, the ends may differ by
the length of the transfer: those say nothing about clocks.
"""

from __future__ import annotations

import heapq
from collections import defaultdict
from collections.abc import Iterable, Mapping

import msgspec

from syncscope.schema.report import Collective, TraceInfo
from syncscope.trace.names import ONE_SIDED
from syncscope.trace.quantiles import median

Meeting = dict[int, Collective]
"""One collective as the ranks that took part saw it, by the trace's place in the report."""

TOGETHER_MS = 0.2
"""Milliseconds within which the ranks of a collective end it; what ends further apart is not one collective."""

TOGETHER_SHARE = 0.5
"""The same as a share of how long the rank ran it that came last: ranks that get more from the others than they give
end a long one later."""

FEWEST = 3
"""The clocks of two ranks are compared if they have at least this many collectives in common."""

YEAR_1973_NS = 10**17
"""Times since the epoch are later."""


class Offset(msgspec.Struct, frozen=True):
    """How much later one rank says that their common collectives end than another does, in ms of file times."""

    median: float
    spread: float
    """Median distance from the median."""
    agrees: bool
    """Whether most of them end at one moment, once that is taken off."""

    def near(self, ms: float, shortest_ms: float = 0.0) -> bool:
        """Whether a collective ended at one moment on both, of which the rank that came last ran ``shortest_ms``."""
        return abs(ms - self.median) <= max(TOGETHER_MS, TOGETHER_SHARE * shortest_ms)


class Clock(msgspec.Struct, frozen=True):
    """A rank's clock by the reference's."""

    offset_ms: float | None
    """By how much it is ahead; ``None`` where the files do not say when they begin."""
    spread_ms: float


def differences(meeting: Meeting) -> dict[tuple[int, int], float]:
    """For each other rank and the first of them, how much later it says that the collective ended, in ms since the base
    of its own file."""
    first, *others = meeting
    return {(first, other): meeting[other].end_ms - meeting[first].end_ms for other in others}


def compare_pairs(meetings: Iterable[Meeting]) -> dict[tuple[int, int], Offset]:
    """The offset of every pair of ranks that ``differences`` compares."""
    by_pair: defaultdict[tuple[int, int], list[float]] = defaultdict(list)
    for meeting in meetings:
        for pair, ms in differences(meeting).items():
            by_pair[pair].append(ms)
    return {pair: find_offset(values) for pair, values in by_pair.items()}


def find_offset(values: list[float]) -> Offset:
    """The offset of two ranks, of whose common collectives the ends are so far apart, in ms."""
    middle = median(values)
    off = [abs(ms - middle) for ms in values]
    near = sum(ms <= TOGETHER_MS for ms in off)
    return Offset(middle, median(off), 2 * near > len(values))


def compare_clocks(meetings: Iterable[Meeting], traces: Mapping[int, TraceInfo], reference: int) -> dict[int, Clock]:
    """The clock of every trace that collectives connect with ``reference``, over the links with the least spread."""
    mutual = [one for one in meetings if next(iter(one.values())).name.partition(" ")[0] not in ONE_SIDED]
    often: defaultdict[tuple[int, int], int] = defaultdict(int)
    for meeting in mutual:
        for pair in differences(meeting):
            often[pair] += 1
    links: defaultdict[int, list[tuple[float, int, float]]] = defaultdict(list)
    for (one, other), offset in compare_pairs(mutual).items():
        if offset.agrees and often[one, other] >= FEWEST:
            ahead = offset.median + _bases_apart(traces[one], traces[other])
            links[one].append((offset.spread, other, ahead))
            links[other].append((offset.spread, one, -ahead))
    clocks: dict[int, Clock] = {}
    # The nearest first, by spread from the reference.
    nearest: list[tuple[float, int, float]] = [(0.0, reference, 0.0)]
    has_base = {trace: _base(info) is not None for trace, info in traces.items()}
    while nearest:
        spread, trace, ahead = heapq.heappop(nearest)
        if trace in clocks:
            continue
        clocks[trace] = Clock(ahead if has_base[trace] and has_base[reference] else None, spread)
        for more, other, further in links[trace]:
            if other not in clocks:
                heapq.heappush(nearest, (spread + more, other, ahead + further))
    return clocks


def _base(info: TraceInfo) -> int | None:
    """The base of a file's times, ns since the epoch: 0 where they are absolute, ``None`` where nothing says it."""
    meetings = info.meetings
    if meetings is None or meetings.base_ns is None:
        return None
    absolute = any(one.end_ms * 1e6 >= YEAR_1973_NS for one in meetings.collectives[:1])
    return meetings.base_ns if meetings.base_ns or absolute else None


def _bases_apart(one: TraceInfo, other: TraceInfo) -> float:
    """By how much the base of ``other`` is later, in ms; taken as whole ns, which a float of years would lose."""
    return ((_base(other) or 0) - (_base(one) or 0)) / 1e6
