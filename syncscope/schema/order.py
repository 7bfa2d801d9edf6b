"""The order of findings, which is the same in every output."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from syncscope.schema.findings import (
    BETWEEN_RANKS,
    COUNTED,
    LATE_PEER,
    NOTHING,
    PACED,
    RACES,
    SEVERITIES,
    STARVED,
    STATUSES,
    TRAINING,
    Finding,
    gain,
    is_exposed,
)
from syncscope.schema.report import TraceInfo

TOWERS = 2.0
"""Exposed time of which nobody knows what can be gained comes before all gains if it is this many times the most that
any of them can be."""

DWARFS = 0.01
"""Else it comes before those that gain less than this share of it."""

FIRST_PASS, LITTLE_OF_IT = 0.5, 0.1
"""A trace without steps is mostly warm-up where that takes this share of it. Where all changes together gain less
than this share of it, other steps have to be recorded before anything else."""

UNNAMED = 0.1
"""Where no change has a line, so that all of them take another recording as well, what only asks for one comes first if
each likely gains less than this share of what it may save."""

AS_MUCH = 0.5
"""What makes a rank come late explains it where it gains this share of what the rank's not being late does, and a rank
that comes late explains a wait where it holds others for this share of it."""

OF_A_LATE_RANK = {PACED: AS_MUCH, STARVED: 0.9}
"""Rules about what makes a rank come late, and that share: their fix for launches is the late rank's word for word."""

RARE = 0.5
"""Times a step below which what was only counted happens in few of them."""


def ordered(findings: Iterable[Finding], traces: Sequence[TraceInfo] = ()) -> tuple[Finding, ...]:
    """The findings in order, the same in every output: unexpected first; races, since they make results wrong; then by
    what can be gained, of phases whose steps the ``traces`` know over the whole run; what gains less than can be told
    behind a note on idle time, which leads all where the trace is mostly warm-up and nothing gains much of it; other
    notes, waits by design and what only sums up others last. Where the gain is unknown, by the time for which it holds
    the host or the device, over the whole run too, then what happens in the steps before what happens in few of them or
    between them, then by severity and by how often it happens in the run, and what only asks for another recording
    last; but that first where no change has a line or gains a tenth of what it may save, collectives first that are
    exposed for far longer than anything gains, and others before what gains next to nothing beside them. A rank that
    comes late comes behind the finding about what its device is idle for, and a wait for it behind that. Among
    equals, those of training come first."""
    findings = tuple(findings)
    tried = [one for one in findings if _tier(one) == 0 and not one.asks_for_more]
    gains = [max(gain(one) or 0.0, one.saving_high_ms_per_step or 0.0) * weigh(one, traces) for one in tried]
    known = [(gain(one), weigh(one, traces)) for one in findings if _tier(one) == 0]
    least = min((gained * weight for gained, weight in known if gained is not None), default=math.inf)
    most = max(gains, default=0.0)
    in_all = sum(gains) + sum(_holds(one) * weigh(one, traces) for one in tried if gain(one) is None)

    def place(finding: Finding) -> tuple[object, ...]:
        first = _asks_for_later_steps(finding, traces, in_all) or asks_for_lines(finding, tried, traces)
        weight, seldom = weigh(finding, traces), _is_seldom(finding, traces)
        return _place(finding, most, least, weight, _find_cause(finding, tried), seldom=seldom, first=first)

    return tuple(sorted(findings, key=place))


class _Cause(NamedTuple):
    """What a finding follows from that another one is about."""

    gained: float
    """What that one gains, ms a step."""
    before: int
    """How many findings in a row come before this one for that."""


def _find_cause(finding: Finding, others: Sequence[Finding]) -> _Cause | None:
    """What a finding only follows from, where another one is about that. Of a wait for another rank it is that rank's
    being late, where that holds the others for about as long. Of a rank that comes late it is what its device is idle
    for, where that gains about as much, so that its fix is the late rank's too."""
    mine = gain(finding)
    if finding.rule.startswith(BETWEEN_RANKS):
        related = [one for one in others if one.rule in OF_A_LATE_RANK and one.fingerprint in finding.related]
        gains = [(gain(one), OF_A_LATE_RANK[one.rule]) for one in related if one.trace == finding.trace]
        known = [
            gained for gained, share in gains if mine is not None and gained is not None and gained >= share * mine
        ]
        return _Cause(max(known), 1) if known else None
    if mine is not None or finding.saving_null_why != LATE_PEER:
        return None
    late = [one for one in others if one.rule.startswith(BETWEEN_RANKS) and finding.fingerprint in one.related]
    causes = [
        min(gained, cause.gained) if (cause := _find_cause(one, others)) else gained
        for one in late
        if (gained := gain(one)) is not None and _holds(one) >= AS_MUCH * _holds(finding)
    ]
    return _Cause(max(causes), 2) if causes else None


def weigh(finding: Finding, traces: Sequence[TraceInfo]) -> float:
    """What a millisecond a step of a finding counts for: the steps of its phase, as a share of those of the phase with
    the most; 1 where they are not known. Of the recorded step it counts for less where those of the run are shorter."""
    info = traces[finding.trace] if finding.trace < len(traces) else None
    run = info.run if info is not None else None
    phases = {phase.name: phase for phase in run.phases} if run is not None else {}
    mine = phases.get(finding.phase or "")
    if info is None or mine is None or not mine.steps:
        return 1.0
    often = mine.steps / max(phase.steps for phase in phases.values())
    recorded_ms = info.steps.bare_ms
    if finding.run_saving_ms_per_step is not None or mine.step_ms is None or not recorded_ms:
        return often
    return often * min(mine.step_ms.typical / recorded_ms, 1.0)


def _is_seldom(finding: Finding, traces: Sequence[TraceInfo]) -> bool:
    """Whether a finding was only counted, in less than every second step or in a phase without steps."""
    run = traces[finding.trace].run if finding.trace < len(traces) else None
    steps = {phase.name: phase.steps for phase in run.phases} if run is not None else {}
    often = finding.run_per_step
    rare = (often is not None and often < RARE) or steps.get(finding.phase or "") == 0
    return finding.site_source == COUNTED and rare


def _asks_for_later_steps(finding: Finding, traces: Sequence[TraceInfo], in_all: float) -> bool:
    """Whether a note says that its trace, without steps, is mostly warm-up, which what was replayed holds too, and what
    all changes may gain ``in_all``, or are about where that is not known, is little of that."""
    info = traces[finding.trace] if finding.trace < len(traces) else None
    idle_ms, replay = finding.idle_ms_per_step, info.replay if info is not None else None
    if info is None or idle_ms is None or finding.severity != "note" or info.steps.count or info.overlap is None:
        return False
    whole_ms = info.overlap.device_busy_ms + info.overlap.idle_ms
    replayed_ms = replay.step_ms if replay is not None and replay.step_ms is not None else 0.0
    holds_it = replayed_ms > whole_ms - idle_ms
    return holds_it and idle_ms >= FIRST_PASS * whole_ms and in_all < LITTLE_OF_IT * replayed_ms


def asks_for_lines(finding: Finding, others: Iterable[Finding], traces: Sequence[TraceInfo]) -> bool:
    """Whether a finding only asks for another recording, and may save far more than any change among the ``others``
    likely does, none of which has a line: without one that recording comes first anyway."""
    most = finding.saving_high_ms_per_step
    if not finding.asks_for_more or most is None or gain(finding) is not None or _tier(finding) != 0:
        return False
    changes = [one for one in others if not one.asks_for_more and _tier(one) == 0]
    gains = [(gain(one) or 0.0) * weigh(one, traces) for one in changes]
    unlike = any(one.site is not None or one.rule.startswith(RACES) for one in changes)
    unlike = unlike or any(is_exposed(one) and gain(one) is None for one in changes)
    return bool(gains) and not unlike and max(gains) < UNNAMED * most * weigh(finding, traces)


def _weighs(finding: Finding, most: float) -> float | None:
    """The gain beside which a finding of unknown gain is placed, by the milliseconds that it is exposed, where one can
    gain ``most``; ``None`` where it is not exposed."""
    exposed = finding.exposed_ms if finding.exposed_ms_per_step is None else finding.exposed_ms_per_step
    return exposed if exposed is None or exposed > TOWERS * most else DWARFS * exposed


def _tier(finding: Finding) -> int:
    """Findings that may gain something, notes on idle time (a trace of warm-up), those that gain nothing or less than
    can be told, other notes and waits by design."""
    if finding.by_design:
        return 3
    if finding.severity == "note":
        return 3 if finding.idle_ms_per_step is None else 1
    gained = gain(finding)
    little = finding.saving_below_drift and finding.run_saving_ms_per_step is None
    return 2 if little or (gained is not None and gained < NOTHING) else 0


def _holds(finding: Finding) -> float:
    """Milliseconds a step for which a finding holds the host or the device in the recorded steps, over the run where
    that is known of it too, or in all where there are no steps. Of what was only counted nobody knows it well enough:
    0."""
    if finding.run_stall_ms_per_step is not None and finding.stall_ms_per_step is not None:
        return finding.run_stall_ms_per_step
    held = (
        finding.stall_ms_per_step, finding.exposed_ms_per_step, finding.idle_ms_per_step, finding.stall_ms,
        finding.exposed_ms,
    )  # fmt: skip
    return next((ms for ms in held if ms is not None), 0.0)


def _place(
    finding: Finding, most: float, least: float, weight: float, cause: _Cause | None, *, seldom: bool, first: bool
) -> tuple[object, ...]:
    """Where a finding, a millisecond of which counts for ``weight`` and which may be ``seldom`` or the ``first``, comes
    among others, of which one can gain ``most``, and one no more than the ``least``; behind its ``cause``, where
    another is about that."""
    gained = gain(finding)
    if gained is not None and cause is not None:
        gained = min(gained, cause.gained)
    if gained is None and cause is not None:
        gained = cause.gained
    elif gained is None and most > 0:
        gained = _weighs(finding, most / weight)
        if gained is not None and gained * weight < least:
            gained = None  # behind all whose gain is known: among the others it has its place by what it holds
    held = _holds(finding)
    return (
        STATUSES.index(finding.status),
        not finding.rule.startswith(RACES),
        finding.sums_up,
        not first,
        _tier(finding),
        gained is None,
        -(gained or 0.0) * weight,
        0 if cause is None else cause.before,
        gained is None and finding.asks_for_more,
        -held * weight if gained is None else 0.0,
        gained is None and seldom,
        SEVERITIES.index(finding.severity),
        -held,
        -(finding.occurrences or 0) if gained is None else 0,
        finding.phase is not None and not finding.phase.startswith(TRAINING),
        finding.trace,
        finding.rule,
        finding.site.file if finding.site else "",
        finding.site.line or 0 if finding.site else 0,
    )
