"""What a report says of several ranks together: who waits for whom, their clocks, and which could not be read.

Part of the JSON report, under the same contract as ``findings``.
"""

from __future__ import annotations

import msgspec

MOST_RUNS = 4
"""Runs of missing ranks named in a sentence."""


class WaitsFor(msgspec.Struct, frozen=True, kw_only=True):
    """The rank that came last where another waited."""

    trace: int
    """Index into ``Report.traces``."""
    rank: int | None
    ms_per_step: float


class RankBetween(msgspec.Struct, frozen=True, kw_only=True):
    """One rank among the others. Times are milliseconds per step that was compared."""

    trace: int
    """Index into ``Report.traces``."""
    rank: int | None
    collectives: int
    """Those that were compared, in all those steps."""
    last: int
    """Of them, those to which it came last."""
    waits_ms_per_step: float
    """In collectives, for the last to come, as far as no compute of its own hides it."""
    holds_ms_per_step: float
    """That the rank which waits longest waits for this one."""
    waits_for: tuple[WaitsFor, ...] = ()
    """For whom it waits, the longest first, no more than a few."""
    clock_offset_ms: float | None = None
    """By how much its clock is ahead of the reference rank's; ``None`` where no collectives connect the two."""
    clock_spread_ms: float | None = None
    """Median distance from that offset (added up where the two are connected by way of others): what is smaller than
    this, or than the microseconds by which the ends of a collective differ on one clock, is no offset."""


class BetweenRanks(msgspec.Struct, frozen=True, kw_only=True):
    """Ranks compared, collective by collective."""

    steps: int
    collectives: int
    """How often ranks met in those steps."""
    reference: int
    """Index into ``Report.traces`` of the rank whose clock the others' are compared with."""
    ranks: tuple[RankBetween, ...]


class MissingRanks(msgspec.Struct, frozen=True, kw_only=True):
    """Ranks of a run that no trace was given of."""

    trace: int
    """Index into ``Report.traces`` of the first trace of the run."""
    world_size: int
    given: int
    """How many of its ranks were given."""
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
    """A trace that was asked for and could not be read: nothing in the report speaks of it."""

    path: str
    why: str
