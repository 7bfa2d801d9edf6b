"""What a report says of several ranks together: who waits for whom, their clocks, and which could not be read.

Part of the JSON report, under the same contract as ``findings``.
"""

from __future__ import annotations

import msgspec


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
    """How many collectives were compared, in all steps together."""
    last: int
    """How many of them it came to last."""
    waits_ms_per_step: float
    """How long it waits in collectives for the last to come, without what its own compute hides."""
    holds_ms_per_step: float
    """How long the rank that waits longest waits for this one."""
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


class Unread(msgspec.Struct, frozen=True, kw_only=True):
    """A trace that was given and could not be read. Nothing else in the report is about it."""

    path: str
    why: str
