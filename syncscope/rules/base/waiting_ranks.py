"""What a rank gains that waits for another anyhow: no more than the late rank gains by the same fix."""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from math import inf
from statistics import fmean

import msgspec

from syncscope.rules.base.lateness import waits_ms
from syncscope.schema.findings import Finding
from syncscope.schema.idle import cap_causes
from syncscope.schema.numbers import milliseconds
from syncscope.schema.ranks import BetweenRanks
from syncscope.schema.report import TraceInfo

WAITS = "; this rank waits "
"""How the clause of a message begins that says so."""

WAITING = 0.5
"""A rank gains nothing by itself from a fix if it waits for this share of what the fix could save: what it does sooner,
it waits longer."""


OF_HOST = ("launching", "host work", "data loading")
"""Causes of idle time in which the device waits for its host."""


OF_OTHERS = ("host collective", "host idle")
"""Causes of idle time in which the host itself may wait for another rank."""


def find_held_ms(traces: Sequence[TraceInfo], between: BetweenRanks | None) -> dict[int, float]:
    """How long the host of a rank is held in a step, in ms by trace, where its device waits for the host longer than
    for other ranks: collectives that end sooner make such a step shorter only where they hold the host."""
    held: dict[int, float] = {}
    if between is None or between.whole:
        return held
    for row in between.ranks:
        info = traces[row.trace]
        blocked = info.each_step.blocked_ms if info.each_step is not None else None
        causes = info.overlap.idle_by_cause if info.overlap is not None else {}
        if blocked and sum(causes.get(cause, 0.0) for cause in OF_HOST) >= waits_ms(row, between):
            held[row.trace] = fmean(blocked)
    return held


def find_pace_ms(info: TraceInfo) -> float:
    """How long the steps of a rank are, on its host or its device, in ms: those of the latest rank are as long as those
    of all. 0 where that is unknown."""
    known = (info.each_step.length_ms, info.each_step.device_ms) if info.each_step is not None else ()
    return max((fmean(lengths) for lengths in known if lengths), default=0.0)


def find_free_ms(info: TraceInfo, pace_ms: float = 0.0) -> float | None:
    """How long the host of a rank does nothing of its own in a step, in ms: it is blocked, waits for another rank
    or may do so, sleeps, or is ahead of a device or of all ranks' pace, which take longer. The rest of the step stays,
    whatever another rank does. ``None`` without steps, or without calls."""
    each = info.each_step
    if each is None or not each.blocked_ms:
        return None
    causes = info.overlap.idle_by_cause if info.overlap is not None else {}
    ahead_ms = max(fmean(each.device_ms or (0.0,)), pace_ms) - fmean(each.length_ms)
    unseen_ms = info.meetings.unseen_ms if info.meetings is not None else 0.0
    free_ms = fmean(each.blocked_ms) + sum(causes.get(cause, 0.0) for cause in OF_OTHERS) + max(ahead_ms, 0.0)
    return free_ms + unseen_ms


def limit_by_late_ranks(
    findings: Sequence[Finding],
    code: str,
    between: BetweenRanks | None,
    bounded: Set[str] = frozenset(),
    held_ms: Mapping[int, float] | None = None,
) -> list[Finding]:
    """The findings, of which those of a rank that waits for others gain what the same finding gains on ranks that do
    not.

    Traces without steps are replayed rank by rank, so that is so of all rules but ``code``, which is about the waiting
    itself, where a rank waits for ``WAITING`` of what the fix could save longer than the latest rank does. Ranks with
    steps are replayed together, and it is so of the rules ``bounded``, whose gains are at most what the rank's own host
    does: of that the rank loses what it waits. What ``find_held_ms`` found of a late rank limits them, too. The same if
    it is done twice.
    """
    if between is None:
        return list(findings)
    if not between.whole:
        return _limit_in_steps(findings, bounded, between, held_ms or {})
    waits = {row.trace: waits_ms(row, between) for row in between.ranks}
    least = min(waits.values(), default=0.0)
    more = {trace: waited - least for trace, waited in waits.items()}

    def sets_the_pace(finding: Finding) -> bool:
        return WAITING * (finding.saving_high_ms_per_step or 0.0) > more.get(finding.trace, 0.0)

    paces = [one for one in findings if sets_the_pace(one)]

    def limited(finding: Finding) -> Finding:
        if finding.rule == code or finding.saving_ms_per_step is not None or sets_the_pace(finding):
            return finding
        same = (one for one in paces if (one.rule, one.fingerprint) == (finding.rule, finding.fingerprint))
        most = max((one.saving_high_ms_per_step or 0.0 for one in same), default=0.0)
        return _limit(finding, most, f"{milliseconds(waits.get(finding.trace, 0.0))} in all")

    return [limited(finding) for finding in findings]


def _limit_in_steps(
    findings: Sequence[Finding], rules: Set[str], between: BetweenRanks, held_ms: Mapping[int, float]
) -> list[Finding]:
    """The findings, of which one of these rules gains on a rank that waits what the same gains on one that waits for
    less than ``WAITING`` as long, and what that one waits itself, since it may wait for this one, but no more than it
    is ``held_ms``; where it waits for less than ``WAITING`` of what the fix could save, at least what is beyond its
    waiting."""
    waits = {row.trace: waits_ms(row, between) for row in between.ranks}
    least = min(waits.values(), default=0.0)
    mine = [one for one in findings if one.rule in rules and one.trace in waits]

    def limited(finding: Finding) -> Finding:
        known = finding.saving_ms_per_step is not None or WAITS in finding.message
        if finding.rule not in rules or finding.trace not in waits or known:
            return finding
        more = waits[finding.trace] - least
        late = {trace for trace, waited in waits.items() if waited - least < WAITING * more}
        same = (one for one in mine if (one.rule, one.fingerprint) == (finding.rule, finding.fingerprint))
        own = max((one.saving_high_ms_per_step or 0.0 for one in same if one.trace in late), default=0.0)
        high = finding.saving_high_ms_per_step or 0.0
        beyond = high - more if more < WAITING * high else 0.0
        held = max((held_ms.get(trace, inf) for trace in late), default=inf)
        most = max(beyond, min(least + own, max(held, own)))
        return _limit(finding, min(most, high), f"{milliseconds(waits[finding.trace])} a step")

    return [limited(finding) for finding in findings]


def _limit(finding: Finding, most: float, waited: str) -> Finding:
    """The finding of a rank that waits so long, with no more than ``most`` ms to gain."""
    high, message = finding.saving_high_ms_per_step or 0.0, finding.message.partition(WAITS)
    less = max(high - most, 0.0)
    if not less and not message[1]:
        return finding
    least, likely = finding.saving_low_ms_per_step, finding.likely_saving_ms_per_step
    limited = msgspec.structs.replace(
        finding,
        severity="warning" if finding.severity == "error" else finding.severity,
        saving_low_ms_per_step=None if least is None else max(least - less, 0.0),
        saving_high_ms_per_step=high - less,
        likely_saving_ms_per_step=None if likely is None else min(likely, most),
        message=f"{message[0]}{WAITS}{waited} for others that come late, so they set the pace",
    )
    return cap_causes(limited)
