"""Who comes late to a collective: those of several ranks compared, one by one."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field

from syncscope.ranks.clocks import Meeting, apart, clocks, pairs
from syncscope.schema.ranks import BetweenRanks, RankBetween, WaitsFor
from syncscope.schema.report import Collective, Delay, TraceInfo

MOST_WAITED_FOR = 3
"""Ranks named that one waits for."""


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


@dataclass
class Waits:
    """A rank in the collectives that were compared."""

    met: int = 0
    waits: Counter[int] = field(default_factory=Counter)
    """How long it waited, in ns, for each of the others while that one was the last to come."""


@dataclass(frozen=True)
class Compared:
    """Ranks, by the trace's place in the report, collective by collective."""

    steps: int
    """How many steps could be compared."""
    late: dict[int, Late]
    """The ranks that came last somewhere."""
    between: BetweenRanks | None


def compare(ranks: dict[int, TraceInfo]) -> Compared:
    """Who comes last to the collectives of several ranks, and who waits for it meanwhile."""
    met = _together(list(_matched(ranks)))
    numbers = sorted({next(iter(meeting.values())).step for meeting in met})
    # Profilers start apart, and the first ranks to record wait for the last in the first step.
    timed = set(numbers[1:] if len(numbers) > 2 else numbers)
    late: defaultdict[int, Late] = defaultdict(Late)
    rows: defaultdict[int, Waits] = defaultdict(Waits)
    meetings = [meeting for meeting in met if next(iter(meeting.values())).step in timed]
    for meeting in meetings:
        last = min(meeting, key=lambda trace: meeting[trace].ms)
        own = meeting[last]
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
        rows[last].met += 1
        for trace, ms in waited.items():
            rows[trace].met += 1
            rows[trace].waits[last] += round(ms * 1e6)
    between = _between(ranks, len(timed), meetings, met, late, rows) if meetings else None
    return Compared(len(timed), dict(late), between)


def _between(
    ranks: dict[int, TraceInfo],
    steps: int,
    meetings: list[Meeting],
    met: list[Meeting],
    late: dict[int, Late],
    rows: dict[int, Waits],
) -> BetweenRanks:
    """What the report says of the ranks together. Clocks are compared in all steps (``met``)."""
    reference = min(rows, key=lambda trace: (ranks[trace].rank or 0, trace))
    clock = clocks(met, ranks, reference)

    def row(trace: int) -> RankBetween:
        mine, known, held = rows[trace], clock.get(trace), late.get(trace, Late())
        longest = sorted(mine.waits.items(), key=lambda pair: (-pair[1], pair[0]))[:MOST_WAITED_FOR]
        return RankBetween(
            trace=trace,
            rank=ranks[trace].rank,
            collectives=mine.met,
            last=held.times,
            waits_ms_per_step=round(mine.waits.total() / 1e6 / steps, 6),
            holds_ms_per_step=round(held.held / steps, 6),
            waits_for=tuple(
                WaitsFor(trace=other, rank=ranks[other].rank, ms_per_step=round(ns / 1e6 / steps, 6))
                for other, ns in longest
                if ns > 0
            ),
            clock_offset_ms=None if known is None or known.offset_ms is None else round(known.offset_ms, 6),
            clock_spread_ms=None if known is None or known.offset_ms is None else round(known.spread_ms, 6),
        )

    return BetweenRanks(
        steps=steps, collectives=len(meetings), reference=reference, ranks=tuple(map(row, sorted(rows)))
    )


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
    """Those that ended at one moment, whatever the ranks' clocks say. Where that does not hold for most of what two
    ranks have in common, nothing of it is compared."""
    clock = pairs(matched)
    return [
        meeting
        for meeting in matched
        if all(clock[pair].agrees and clock[pair].near(ms) for pair, ms in apart(meeting).items())
    ]
