"""What a report says of several ranks together: who waits for whom, their clocks, and which could not be read.

Part of the JSON report, under the same contract as ``findings``.
"""

import msgspec

MOST_RUNS = 4
"""Runs of missing ranks named in a sentence."""


class WaitsFor(msgspec.Struct, frozen=True, kw_only=True):
    """The rank that came last where another waited."""

    trace: int
    """Index into ``Report.traces``."""
    rank: int | None
    ms_per_step: float


class KindBetween(msgspec.Struct, frozen=True, kw_only=True):
    """A rank's collectives of one kind and process group. Times are milliseconds per step that was compared."""

    name: str
    exposed_ms_per_step: float
    """How long they ran with no compute beside them."""
    waits_ms_per_step: float
    """How long of it the rank waits for others, each collective by itself: so it counts, too, that ranks come late in
    turn, and what one waits for another that began to record later."""


class FindingBetween(msgspec.Struct, frozen=True, kw_only=True):
    """The collectives of a rank that one of its findings is about. Times are milliseconds in all steps, the first one
    too."""

    meets: int
    """As ``Finding.meets``."""
    collectives: int
    not_compared: int = 0
    """How many of its collectives other ranks have no match for, or did not end together with it."""
    exposed_ms: float
    """How long they are exposed, those that were not compared too."""
    waits_ms: float
    """How long of it the rank waits for others, each collective by itself: what it is exposed beyond the time that the
    rank takes that comes last."""
    before_ms: float = 0.0
    """How long of that it waits once for a rank that began the first recorded step later, as
    ``RankBetween.waits_before_ms``."""
    longest_for: int | None = None
    """Index into ``Report.traces`` of the rank that it waits for longest."""
    longest_ms: float | None = None
    """How long it waits for that one, without ``before_ms``; ``None`` in reports of earlier versions."""


class RankBetween(msgspec.Struct, frozen=True, kw_only=True):
    """One rank among the others. Times are milliseconds per step that was compared."""

    trace: int
    """Index into ``Report.traces``."""
    rank: int | None
    collectives: int
    """How many collectives were compared, in all steps together."""
    not_compared: int = 0
    """How many more it has, besides a first step left out, that other ranks have no match for, or did not end together
    with it."""
    last: int
    """How many of them it came to last."""
    waits_ms_per_step: float
    """How long it waits in collectives for the last to come, without what its own compute hides."""
    in_kinds: tuple[KindBetween, ...] | None = None
    """Its collectives by kind and process group, in the order of their names; ``None`` in reports of earlier
    versions."""
    in_findings: tuple[FindingBetween, ...] | None = None
    """Its collectives by the finding that they are part of; ``None`` in reports of earlier versions."""
    holds_ms_per_step: float
    """How long the rank that waits longest waits for this one."""
    holds_each_step_ms: tuple[float, ...] | None = None
    """The same of every step that was compared; ``None`` in reports of earlier versions."""
    waits_before_ms: float | None = None
    """How long, in all, it waits in its first collective for a rank that began the first recorded step later (without
    steps, its recording): what held that one is not recorded. It is no part of ``waits_ms_per_step``. ``None`` where
    the first step is not compared, or nothing says when it begins."""
    holds_before_ms: float | None = None
    """How long, in all, another waits for this one in that way. It is no part of ``holds_ms_per_step``."""
    waits_for: tuple[WaitsFor, ...] = ()
    """The ranks that it waits for longest, in that order; at most a few."""
    clock_offset_ms: float | None = None
    """By how much its clock is ahead of the reference rank's; ``None`` where no collectives connect the two."""
    clock_spread_ms: float | None = None
    """Median distance from that offset (the sum, where the two are compared through other ranks). An offset smaller
    than this, or than the microseconds by which the ends of a collective differ on one clock, means nothing."""


class BetweenRanks(msgspec.Struct, frozen=True, kw_only=True):
    """Ranks compared, collective by collective."""

    steps: int
    collectives: int
    """How often ranks met in those steps."""
    reference: int
    """Index into ``Report.traces`` of the rank whose clock the others' are compared with."""
    ranks: tuple[RankBetween, ...]
    missing: int = 0
    """How many ranks of the run have no trace among those that were compared."""
    whole: bool = False
    """Whether the traces have no steps: all of each is compared as if it were one, and times are in all."""


class MissingRanks(msgspec.Struct, frozen=True, kw_only=True):
    """Ranks of a run without a trace."""

    trace: int
    """Index into ``Report.traces`` of the first trace of the run."""
    world_size: int
    given: int
    """How many ranks have a trace, in any phase, among the traces with this ``world_size``."""
    runs: tuple[tuple[int, int], ...]
    """First and last of each run of missing ranks."""

    @property
    def text(self) -> str:
        """One sentence."""
        number = sum(last - first + 1 for first, last in self.runs)
        shown = [str(first) if first == last else f"{first}–{last}" for first, last in self.runs[:MOST_RUNS]]
        more = " and others" if len(self.runs) > MOST_RUNS else ""
        noun, was = ("rank", "was") if number == 1 else ("ranks", "were")
        return f"{noun} {', '.join(shown)}{more} of {self.world_size} {was} not given"


class Unread(msgspec.Struct, frozen=True, kw_only=True):
    """A trace that was given and could not be read. Nothing else in the report is about it."""

    path: str
    why: str
