"""The finding that a report begins with: where most can be gained, as far as that is known."""

from __future__ import annotations

import math
from collections.abc import Sequence

from syncscope.report.device_time import share_of_cause, share_of_compute
from syncscope.report.first_change import is_hidden
from syncscope.report.impact import HIGH, describe_impact, measure_gain
from syncscope.report.known_causes import begin_with_cause
from syncscope.report.no_change import COMPUTES, is_mostly_unknown
from syncscope.report.runs import is_counted_only, is_seldom, phase_of
from syncscope.report.worth_phrases import find_step_of_run, lacks_warm_up
from syncscope.schema.findings import BETWEEN_RANKS, RACES, Finding, gain, is_exposed
from syncscope.schema.order import asks_for_lines, weigh
from syncscope.schema.report import TraceInfo

FAR = 3.0
"""What may save so many times as much of the run as a wait that no window recorded comes before it."""

NEARLY_AS_MUCH = 0.5
"""Of what a change likely gains, of which only the most is known: one whose saving is known comes first where it saves
as much."""

MOSTLY = 0.5
"""Of the run: a phase that takes more, and ``FAR`` times as much as another, is what the report begins with."""

TOLD = ("wrong", "high", "medium")
"""Impacts of 1 % of the step and more, that of a race too."""


def choose_first(found: Sequence[Finding], traces: Sequence[TraceInfo]) -> Finding | None:
    """The finding to begin with, with the fix of the cause that gains most. ``None`` where nothing is known to help, or
    the best is but a guess, or little of a first pass."""
    best = begin_with_cause(find_first(found, traces), found, traces)
    if best is None:
        return None
    for one in (_prefer_longest_phase(best, found, traces), best):
        info = traces[one.trace]
        if not _is_guess(one, info) and not _is_little_of_first_pass(one, info):
            return one
    return None


def find_first(found: Sequence[Finding], traces: Sequence[TraceInfo], *, seldom: bool = False) -> Finding | None:
    """The finding to begin with: the first that gains a share of the step that can be told. Where none has a known
    gain, the first of those of which it is not known, or that only ask for another recording. A note is no beginning,
    nor is a wait by design; what was counted in few steps or between them is one only where a gate fails for it
    (``seldom``). Collectives that come before all others are exposed for far longer than those gain (``ordered``), and
    what asks for another recording comes before them where that may save far more, and they have no line."""
    impacts = [(finding, describe_impact(finding, traces[finding.trace]).level) for finding in found]
    if impacts and impacts[0][1] == "unknown" and _leads(impacts[0][0], found, traces):
        return impacts[0][0]
    told = [one for one, level in impacts if level in TOLD and _can_begin(one)]
    known = _prefer_known(told, traces)
    unknown = (finding for finding, level in impacts if level == "unknown" and _can_begin(finding))
    left = [finding for finding in unknown if seldom or not is_seldom(finding, traces)]
    if known is not None or not left:
        return known
    return left[0] if seldom else _not_a_trifle(left, traces)


def _leads(first: Finding, found: Sequence[Finding], traces: Sequence[TraceInfo]) -> bool:
    """Whether the ``first`` of all, of unknown gain, comes before what is known to gain something."""
    return first.severity != "note" and (is_exposed(first) or asks_for_lines(first, found, traces))


def _not_a_trifle(unknown: Sequence[Finding], traces: Sequence[TraceInfo]) -> Finding:
    """The first, or where that is of a phase that no window recorded, and may save far less of the run than another,
    the one that may save most."""
    first, phase = unknown[0], phase_of(unknown[0], traces)
    if phase is None or phase.recorded or is_counted_only(traces[first.trace]):
        return first
    most = max(unknown, key=lambda finding: most_of_run(finding, traces))
    return most if most_of_run(most, traces) > FAR * most_of_run(first, traces) else first


def most_of_run(finding: Finding, traces: Sequence[TraceInfo]) -> float:
    """The share of the run that a finding may save at most: its phase's, or what is blocked there, or its own bound."""
    info, phase = traces[finding.trace], phase_of(finding, traces)
    saved, step_ms = measure_gain(finding, info), find_step_of_run(finding, info)
    share = phase.share if phase is not None else 0.0
    if saved is not None and saved.step_ms:
        return share * min(saved.ms / saved.step_ms, 1.0)
    if finding.run_stall_ms_per_step is not None and step_ms:
        return share * min(finding.run_stall_ms_per_step / step_ms, 1.0)
    return share


def _prefer_known(told: Sequence[Finding], traces: Sequence[TraceInfo]) -> Finding | None:
    """The first of findings whose gain is told. One of which only the most is known comes behind one whose saving is
    known, and not much less than what the first likely gains; but not launches whose cost the bound does not show."""
    first = next(iter(told), None)
    if first is None or first.rule.startswith(RACES) or is_hidden(first) or is_known(first, traces):
        return first
    least = NEARLY_AS_MUCH * _weigh_gain(first, traces)
    known = (one for one in told if is_known(one, traces))
    return next((one for one in known if _weigh_gain(one, traces) >= least), first)


def _prefer_longest_phase(best: Finding, found: Sequence[Finding], traces: Sequence[TraceInfo]) -> Finding:
    """The ``best``, or where that is of a phase that takes far less of the run than the longest, the first of that
    phase whose gain is told, too; but what is known to save far more of the run stays the first. Where no gain is told
    of that phase, it is the wait that holds the host for far more of the run than the ``best`` saves."""
    mine, run = phase_of(best, traces), traces[best.trace].run
    longest = max(run.phases, key=lambda phase: phase.share, default=None) if run is not None else None
    if best.rule.startswith(RACES) or mine is None or longest is None or longest.share < MOSTLY:
        return best
    if longest.share < FAR * mine.share:
        return best
    told = describe_impact(best, traces[best.trace]).level in TOLD
    own = [
        one
        for one in found
        if phase_of(one, traces) == longest and _can_begin(one) and not one.asks_for_more
        and not is_seldom(one, traces)
    ]  # fmt: skip
    levels = TOLD if told else ("unknown",)
    other = next((one for one in own if describe_impact(one, traces[one.trace]).level in levels), None)
    if other is None:
        held = [one for one in own if one.run_stall_ms_per_step is not None]
        most = max(held, key=lambda one: most_of_run(one, traces), default=best)
        return most if most_of_run(most, traces) > FAR * most_of_run(best, traces) else best
    far_more = is_known(best, traces) and _weigh_gain(best, traces) > FAR * _weigh_gain(other, traces)
    return best if far_more else other


def _weigh_gain(finding: Finding, traces: Sequence[TraceInfo]) -> float:
    return (gain(finding) or 0.0) * weigh(finding, traces)


def is_known(finding: Finding, traces: Sequence[TraceInfo]) -> bool:
    saved = measure_gain(finding, traces[finding.trace])
    return saved is not None and not saved.is_bound


def _can_begin(finding: Finding) -> bool:
    return finding.severity != "note" and not finding.by_design


def _is_guess(best: Finding, info: TraceInfo) -> bool:
    """Whether what a change saves is known at most, and the trace does not show why the device is idle for longer, or
    that is little on a device that computes nearly all the time; where nothing of it is known, that is what such a
    device does not compute. A wait that holds the host for long is no guess."""
    held, step_ms = best.run_stall_ms_per_step, find_step_of_run(best, info)
    if is_hidden(best) or (held is not None and step_ms and held >= HIGH * step_ms):
        return False
    gain = measure_gain(best, info)
    most = 0.0 if gain is None or not gain.step_ms else gain.ms / gain.step_ms
    guessed = not best.rule.startswith(RACES) and (gain is None or gain.kind == "at most")
    computes = share_of_compute(info) or 0.0
    of_others = is_exposed(best) or best.rule.startswith(BETWEEN_RANKS)
    left = most if gain is not None else math.inf if of_others else 1.0 - computes
    little = computes >= COMPUTES and left < HIGH
    return guessed and (little or (is_mostly_unknown(info) and most < share_of_cause("unknown", info)))


def _is_little_of_first_pass(best: Finding, info: TraceInfo) -> bool:
    """Whether a trace without steps is mostly warm-up, which what was replayed holds too, and the change saves little
    of that: what it saves of later passes is another matter."""
    if info.steps.count or best.rule.startswith(RACES) or share_of_cause("warm-up", info) < MOSTLY:
        return False
    saved = measure_gain(best, info)
    little = saved is not None and saved.step_ms and saved.ms < HIGH * saved.step_ms
    return bool(little) and not lacks_warm_up(info)
