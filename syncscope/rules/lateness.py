"""Who comes late: the collectives of several ranks compared, one by one."""

from __future__ import annotations

import statistics
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field

from syncscope.findings import Collective, TraceInfo

TOGETHER_MS = 0.2
"""Milliseconds within which the ranks of a collective end it; what ends further apart is not one collective."""

Meeting = dict[int, Collective]
"""One collective as the ranks that took part saw it, by the trace's place in the report."""


@dataclass
class Late:
    """A rank while it was the last to come. Times are sums over the steps that were compared, in ms."""

    held: float = 0.0
    """Of the rank that waited longest in each collective, as far as it had nothing to compute meanwhile."""
    idle: float = 0.0
    """Of its own device before those collectives."""
    times: int = 0
    """How often it came last."""
    names: Counter[str] = field(default_factory=Counter)
    """The collectives, with how long the others waited in them, in ns."""
    delays: Counter[int | None] = field(default_factory=Counter)
    """What the device was idle for (index into its ``Meetings.delays``), and how long, in ns."""
    held_traces: set[int] = field(default_factory=set)
    """The ranks that waited."""


def compare(ranks: dict[int, TraceInfo]) -> tuple[int, dict[int, Late]]:
    """How many steps could be compared, and the ranks that came last somewhere, by the trace's place in the report."""
    met = _together(list(_matched(ranks)))
    numbers = sorted({next(iter(meeting.values())).step for meeting in met})
    # Profilers start apart, and the first ranks to record wait for the last in the first step.
    timed = set(numbers[1:] if len(numbers) > 2 else numbers)
    late: defaultdict[int, Late] = defaultdict(Late)
    for meeting in met:
        last = min(meeting, key=lambda trace: meeting[trace].ms)
        own = meeting[last]
        if own.step not in timed:
            continue
        waited = {trace: min(one.ms - own.ms, one.exposed_ms) for trace, one in meeting.items() if trace != last}
        found = late[last]
        found.held += max(waited.values())
        found.idle += own.idle_ms
        found.times += 1
        found.names[own.name] += round(max(waited.values()) * 1e6)
        found.delays[own.delay] += round(own.idle_ms * 1e6)
        found.held_traces |= waited.keys()
    return len(timed), dict(late)


def _matched(ranks: dict[int, TraceInfo]) -> Iterator[Meeting]:
    """The collectives of a step and a kind by their order, where the ranks that have any have as many."""
    by_kind: defaultdict[tuple[int, str], defaultdict[int, list[Collective]]] = defaultdict(lambda: defaultdict(list))
    for trace, info in ranks.items():
        for one in info.meetings.collectives if info.meetings else ():
            by_kind[one.step, one.name][trace].append(one)
    for kind in sorted(by_kind):
        rows = by_kind[kind]
        if len(rows) > 1 and len({len(row) for row in rows.values()}) == 1:
            yield from (dict(zip(rows, together, strict=True)) for together in zip(*rows.values(), strict=True))


def _together(matched: list[Meeting]) -> list[Meeting]:
    """Those that ended at one moment, whatever the ranks' clocks say: the clocks of two are apart by the median."""
    apart: defaultdict[tuple[int, int], list[float]] = defaultdict(list)
    for meeting in matched:
        first, *others = meeting
        for other in others:
            apart[first, other].append(meeting[other].end_ms - meeting[first].end_ms)
    offset = {pair: statistics.median(values) for pair, values in apart.items()}
    return [meeting for meeting in matched if _spread(meeting, offset) <= TOGETHER_MS]


def _spread(meeting: Meeting, offset: dict[tuple[int, int], float]) -> float:
    first, *others = meeting
    ends = [0.0, *(meeting[other].end_ms - meeting[first].end_ms - offset[first, other] for other in others)]
    return max(ends) - min(ends)
