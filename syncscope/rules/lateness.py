"""Who comes late: the collectives of several ranks compared, one by one."""

from __future__ import annotations

import statistics
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field

from syncscope.findings import Collective, Delay, TraceInfo

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
    """Of its own device before those collectives, beyond what the rank that waited longest was idle for too."""
    times: int = 0
    """How often it came last."""
    names: Counter[str] = field(default_factory=Counter)
    """The collectives, with how long the others waited in them, in ns."""
    delays: Counter[Delay] = field(default_factory=Counter)
    """What the device was idle for, and how long, in ns."""
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
        longest = max(waited, key=lambda trace: waited[trace])
        lost = _idle(own, ranks[last]) - _idle(meeting[longest], ranks[longest])
        found = late[last]
        found.held += waited[longest]
        found.idle += lost.total() / 1e6
        found.times += 1
        found.names[own.name] += round(waited[longest] * 1e6)
        found.delays += lost
        found.held_traces |= waited.keys()
    return len(timed), dict(late)


def _idle(one: Collective, info: TraceInfo) -> Counter[Delay]:
    """What the device was idle for before a collective, in ns."""
    delays = info.meetings.delays if info.meetings else ()
    pairs = zip(one.delays, one.idle_ms, strict=False)
    return Counter({delays[number]: round(ms * 1e6) for number, ms in pairs if 0 <= number < len(delays)})


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
    """Those that ended at one moment, whatever the ranks' clocks say: the clocks of two are apart by the median. Where
    that does not hold for most of what two ranks have in common, nothing of it is compared."""
    apart: defaultdict[tuple[int, int], list[float]] = defaultdict(list)
    for meeting in matched:
        for pair, ms in _apart(meeting).items():
            apart[pair].append(ms)
    clock = {pair: statistics.median(values) for pair, values in apart.items()}
    agree = {
        pair: 2 * sum(abs(ms - clock[pair]) <= TOGETHER_MS for ms in values) > len(values)
        for pair, values in apart.items()
    }
    return [
        meeting
        for meeting in matched
        if all(agree[pair] and abs(ms - clock[pair]) <= TOGETHER_MS for pair, ms in _apart(meeting).items())
    ]


def _apart(meeting: Meeting) -> dict[tuple[int, int], float]:
    """By how much later than the first of them each rank says that it ended, in ms."""
    first, *others = meeting
    return {(first, other): meeting[other].end_ms - meeting[first].end_ms for other in others}
