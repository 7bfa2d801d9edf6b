"""Which rank comes late to each collective, and how long the others wait for it."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator
from itertools import repeat
from math import inf

import msgspec

from syncscope.ranks.clocks import Meeting, compare_clocks
from syncscope.ranks.matching import find_meetings
from syncscope.ranks.own_waits import find_own_waits
from syncscope.schema.ranks import BetweenRanks, FindingBetween, KindBetween, RankBetween, WaitsFor
from syncscope.schema.report import START, Collective, Delay, TraceInfo

MOST_WAITED_FOR = 3
"""How many of the ranks that one waits for are named."""


class LateRank(msgspec.Struct):
    """A rank where it was the last to come to a collective. Times are sums over the steps that were compared, in ms."""

    held: float = 0.0
    """How long the rank that waited longest in each collective waited with nothing to compute, without ``before``."""
    by_step: defaultdict[int, float] = msgspec.field(default_factory=lambda: defaultdict(float))
    """``held`` by the number of the step, in ms."""
    before: float = 0.0
    """How long another waited in its first collective because this one began the first recorded step later."""
    idle: float = 0.0
    """How much longer its device was idle before those collectives than that of the rank that waited longest."""
    times: int = 0
    """How often it came last."""
    names: Counter[str] = msgspec.field(default_factory=Counter)
    """The collectives, with how long the others waited in them, in ns."""
    delays: Counter[Delay] = msgspec.field(default_factory=Counter)
    """What the device was idle for, and how much longer than the other's, in ns: less than nothing where the other's
    was idle for it."""
    held_traces: set[int] = msgspec.field(default_factory=set)
    """The ranks that waited."""
    in_kinds: dict[str, LateRank] = msgspec.field(default_factory=dict)
    """The same by the kind of the collectives."""

    def add(self, name: str, held: float, lost: Counter[Delay], others: set[int]) -> None:
        """Count a collective in which it ``held`` the ``others``, after it was idle for what it ``lost`` (ns)."""
        self.held += held
        self.idle += lost.total() / 1e6
        self.times += 1
        self.names[name] += round(held * 1e6)
        self.delays.update(lost)
        self.held_traces |= others

    def explained(self, share: float) -> LateRank:
        """The collectives for which its idle device explains so large a share of what it held the others: all of them,
        else those of some kinds. A stage of a pipeline computes while the next waits for it, and may still come late to
        others."""
        if self.idle >= share * self.held:
            return self
        part = LateRank(before=self.before)
        for name, kind in self.in_kinds.items():
            if kind.idle >= share * kind.held:
                part.held, part.idle, part.times = part.held + kind.held, part.idle + kind.idle, part.times + kind.times
                part.names[name] = kind.names[name]
                part.delays.update(kind.delays)
                part.held_traces |= kind.held_traces
        return part


class RankWaits(msgspec.Struct):
    """A rank in the collectives that were compared."""

    collectives: int = 0
    waits: Counter[int] = msgspec.field(default_factory=Counter)
    """How long it waited, in ns, for each of the others while that one was the last to come, without ``before``."""
    exposed: Counter[str] = msgspec.field(default_factory=Counter)
    """How long each kind of collective ran with no compute beside it, in ns."""
    one_by_one: Counter[str] = msgspec.field(default_factory=Counter)
    """How long of that it waited, in ns, where collectives that were compared several in a row are compared one by
    one."""
    before: float = 0.0
    """How long it waited in its first collective for a rank that began the first recorded step later, in ms."""


class Lateness(msgspec.Struct, frozen=True):
    """Ranks, by the trace's place in the report, compared collective by collective."""

    steps: int
    """How many steps could be compared."""
    late: dict[int, LateRank]
    """The ranks that came last somewhere."""
    between: BetweenRanks | None
    alone: dict[int, frozenset[str]] = msgspec.field(default_factory=dict)
    """The kinds of collectives of each rank that met no other rank's: those in their groups have no trace here, or did
    not end together with them."""


def compare_ranks(ranks: dict[int, TraceInfo]) -> Lateness:
    """Find which rank comes last to each collective, and which ranks wait for it."""
    every = find_meetings(ranks)
    steps = sorted({_step_of(meeting) for meeting in every})
    # Profilers do not start at the same time, and the first ranks to record wait for the last in the first step.
    counted = set(steps[1:] if len(steps) > 2 else steps)
    meetings = [meeting for meeting in every if _step_of(meeting) in counted]
    late: defaultdict[int, LateRank] = defaultdict(LateRank)
    waits: defaultdict[int, RankWaits] = defaultdict(RankWaits)
    whole = len(meetings) == len(every)
    before = [
        _add(meeting, ranks, first if whole else {}, late, waits)
        for meeting, first in zip(meetings, _first_ends(meetings), strict=True)
    ]
    own = find_own_waits(ranks, zip(every, before if whole else repeat({}), strict=False))
    between = _between(ranks, sorted(counted), meetings, every, late, waits, own) if meetings else None
    return Lateness(len(counted), dict(late), between, _find_alone(ranks, every))


def _find_alone(ranks: dict[int, TraceInfo], meetings: list[Meeting]) -> dict[int, frozenset[str]]:
    met: defaultdict[int, set[str]] = defaultdict(set)
    for meeting in meetings:
        for trace, one in meeting.items():
            met[trace].add(_kind(one))
    return {
        trace: frozenset(_kind(one) for one in info.meetings.collectives) - met[trace]
        for trace, info in ranks.items()
        if info.meetings
    }


def _kind(one: Collective) -> str:
    """A collective's name without its group."""
    return one.name.partition(" of group ")[0]


def _step_of(meeting: Meeting) -> int:
    return next(iter(meeting.values())).step


def _first_ends(meetings: list[Meeting]) -> Iterator[dict[int, float]]:
    """For each collective, when the first of the same ranks ends on each of them, in ms since the base of the rank's
    own file."""
    ends: dict[tuple[int, ...], dict[int, float]] = {}
    for meeting in meetings:
        first = ends.setdefault(tuple(meeting), {})
        for trace, one in meeting.items():
            first[trace] = min(one.end_ms, first.get(trace, inf))
    return (ends[tuple(meeting)] for meeting in meetings)


def _later_begin(meeting: Meeting, last: int, other: int, ranks: dict[int, TraceInfo]) -> float:
    """By how many ms ``last`` began the first recorded step later than ``other``, who ended the collective with it; 0
    where that is unknown."""
    begin, others = _begin(ranks[last]), _begin(ranks[other])
    if begin is None or others is None:
        return 0.0
    return max((meeting[other].end_ms - others) - (meeting[last].end_ms - begin), 0.0)


def _begin(info: TraceInfo) -> float | None:
    """When the first recorded step of a rank begins, in ms since the base of its file; ``None`` where unknown."""
    return None if info.meetings is None else info.meetings.begin_ms


def _add(
    meeting: Meeting,
    ranks: dict[int, TraceInfo],
    first: dict[int, float],
    late: defaultdict[int, LateRank],
    waits: defaultdict[int, RankWaits],
) -> dict[int, float]:
    """Count one collective: all end it together, so the rank that ran it for the shortest time came last. Until the
    ``first`` of the same ranks has ended, they may be apart for what was before the recorded steps: returns how long
    ranks wait for that, in ms."""
    last = min(meeting, key=lambda trace: meeting[trace].ms)
    own = meeting[last]
    alone = _exposed_waiting(meeting)
    waited = {trace: min(one.ms - own.ms, alone[trace]) for trace, one in meeting.items() if trace != last}
    in_all, apart = Counter(waited), dict[int, float]()
    for trace, one in meeting.items():
        if trace != last and one.end_ms - one.ms < first.get(trace, -inf):
            before = min(_later_begin(meeting, last, trace, ranks), waited[trace])
            waited[trace] -= before
            apart[trace] = before
            late[last].before = max(late[last].before, before)
            waits[trace].before = max(waits[trace].before, before)
    longest = max(waited, key=lambda trace: waited[trace])
    lost = _idle(own, ranks[last])
    lost.subtract(_idle(meeting[longest], ranks[longest]))
    # A recording that began earlier shows more of what was before the device's first work.
    earlier = round(_later_begin(meeting, longest, last, ranks) * 1e6)
    for delay in (one for one in lost if one.cause == START):
        lost[delay] = max(lost[delay] - earlier, 0)
    rank = late[last]
    rank.by_step[own.step] += waited[longest]
    for counted in (rank, rank.in_kinds.setdefault(own.name, LateRank())):
        counted.add(own.name, waited[longest], lost, set(waited))
    waits[last].collectives += 1
    shortest = [min(lengths) for lengths in zip(*(one.each_ms for one in meeting.values()), strict=False)]
    for trace, one in meeting.items():
        in_turn = min(sum(one.each_ms) - sum(shortest), alone[trace]) if shortest else 0.0
        waits[trace].exposed[one.name] += round(one.exposed_ms * 1e6)
        waits[trace].one_by_one[one.name] += round(max(in_turn, in_all[trace]) * 1e6)
    for trace, ms in waited.items():
        waits[trace].collectives += 1
        waits[trace].waits[last] += round(ms * 1e6)
    return apart


def _exposed_waiting(meeting: Meeting) -> dict[int, float]:
    """For how long, at most, each rank waits in a meeting with no compute beside it, in ms: it is exposed before the
    rank comes that comes last. Where the collectives are not kept one by one, for all that they are exposed."""
    lengths = {trace: one.each_ms or (one.ms,) for trace, one in meeting.items()}
    if len({len(row) for row in lengths.values()}) > 1:
        return {trace: one.exposed_ms for trace, one in meeting.items()}
    last = [min(row) for row in zip(*lengths.values(), strict=True)]

    def waits(one: Collective, row: tuple[float, ...]) -> float:
        parts = enumerate(zip(row, last, strict=True))
        return sum(one.exposed_last(place, whole) - one.exposed_last(place, end) for place, (whole, end) in parts)

    return {trace: waits(one, lengths[trace]) if one.each_last_ms else one.exposed_ms for trace, one in meeting.items()}


def _between(
    ranks: dict[int, TraceInfo],
    numbers: list[int],
    meetings: list[Meeting],
    every: list[Meeting],
    late: dict[int, LateRank],
    waits: dict[int, RankWaits],
    own: dict[int, tuple[FindingBetween, ...]],
) -> BetweenRanks:
    """What the report says of the ranks together, in the steps with these ``numbers``. Clocks are compared in ``every``
    collective, of all steps, and so are those that findings are about (``own``)."""
    whole, steps = len(meetings) == len(every), len(numbers)
    left_out = {_step_of(meeting) for meeting in every} - set(numbers)
    reference = min(waits, key=lambda trace: (ranks[trace].rank or 0, trace))
    clocks = compare_clocks(every, ranks, reference)

    def row(trace: int) -> RankBetween:
        mine, clock, held = waits[trace], clocks.get(trace), late.get(trace, LateRank())
        told = whole and _begin(ranks[trace]) is not None
        longest = sorted(mine.waits.items(), key=lambda pair: (-pair[1], pair[0]))[:MOST_WAITED_FOR]
        return RankBetween(
            trace=trace,
            rank=ranks[trace].rank,
            collectives=mine.collectives,
            not_compared=_count(ranks[trace], left_out) - mine.collectives,
            last=held.times,
            waits_ms_per_step=round(mine.waits.total() / 1e6 / steps, 6),
            in_kinds=tuple(
                KindBetween(
                    name=name,
                    exposed_ms_per_step=round(ns / 1e6 / steps, 6),
                    waits_ms_per_step=round(mine.one_by_one[name] / 1e6 / steps, 6),
                )
                for name, ns in sorted(mine.exposed.items())
            ),
            in_findings=own[trace],
            holds_ms_per_step=round(held.held / steps, 6),
            holds_each_step_ms=tuple(round(held.by_step.get(number, 0.0), 6) for number in numbers),
            waits_before_ms=round(mine.before, 6) if told else None,
            holds_before_ms=round(held.before, 6) if told else None,
            waits_for=tuple(
                WaitsFor(trace=other, rank=ranks[other].rank, ms_per_step=round(ns / 1e6 / steps, 6))
                for other, ns in longest
                if ns > 0
            ),
            clock_offset_ms=None if clock is None or clock.offset_ms is None else round(clock.offset_ms, 6),
            clock_spread_ms=None if clock is None or clock.offset_ms is None else round(clock.spread_ms, 6),
        )

    return BetweenRanks(
        steps=steps,
        collectives=len(meetings),
        reference=reference,
        ranks=tuple(map(row, sorted(waits))),
        missing=max(max(ranks[trace].world_size or 0 for trace in waits) - len(waits), 0),
        whole=not any(ranks[trace].steps.count for trace in waits),
    )


def _count(info: TraceInfo, left_out: set[int]) -> int:
    """How many collectives a rank has in the steps without those with the numbers ``left_out``."""
    return sum(one.step not in left_out for one in info.meetings.collectives) if info.meetings else 0


def _idle(one: Collective, info: TraceInfo) -> Counter[Delay]:
    """What the device was idle for before a collective, in ns."""
    delays = info.meetings.delays if info.meetings else ()
    lengths = zip(one.delays, one.idle_ms, strict=False)
    return Counter({delays[number]: round(ms * 1e6) for number, ms in lengths if 0 <= number < len(delays)})
