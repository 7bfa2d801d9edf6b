"""The lines that open every output: how long the step is and what it becomes, the change to make first, which part of
the program was recorded, and how idle the device is and why.

They are plain text and name what the traces name: each output escapes them.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import msgspec

from syncscope.report.cards import choose_findings, count_changes
from syncscope.report.device_time import find_whole, share_of_cause, share_of_compute, share_of_idle
from syncscope.report.first_change import (
    LEADS,
    Change,
    describe_bound,
    describe_change,
    describe_gain,
    describe_place,
    is_hidden,
)
from syncscope.report.impact import HIGH, Gain, describe_impact, measure_all, measure_gain
from syncscope.report.known_causes import begin_with_cause
from syncscope.report.no_change import COMPUTES, explain_no_change, is_mostly_unknown
from syncscope.report.numbers import milliseconds, percent, seconds, span
from syncscope.report.recorded_part import describe_part
from syncscope.report.run_phrases import tell_longer_steps
from syncscope.report.runs import (
    count_waits,
    find_phase,
    holds_collectives_alone,
    is_counted_only,
    is_seldom,
    main_phase,
    phase_of,
)
from syncscope.report.trace_phrases import label_by_number, label_cause, was_shared
from syncscope.report.worth_phrases import LOW, find_step_ms, find_step_of_run, outlasts_recorded
from syncscope.schema.findings import BETWEEN_RANKS, COMPILED, RACES, Finding, gain, is_exposed
from syncscope.schema.order import weigh
from syncscope.schema.report import Report, TraceInfo
from syncscope.schema.run import Run
from syncscope.schema.verdict import Verdict

MOST_CAUSES = 3
"""Causes of idle time that are named; the report has all."""
LEAST_SHARE = 0.01
"""Of the step: causes of idle time that take less are not named."""


FAR = 3.0
"""What may save so many times as much of the run as a wait that no window recorded comes before it."""

UNLIKE = 1.5
"""A step that takes so many times as long as those of the run, or they as it, is told beside theirs."""

NEARLY_AS_MUCH = 0.5
"""Of what a change likely gains, of which only the most is known: one whose saving is known comes first where it saves
as much."""

MOSTLY = 0.5
"""Of the run: a phase that takes more, and ``FAR`` times as much as another, is what the report begins with."""

TOLD = ("wrong", "high", "medium")
"""Impacts of 1 % of the step and more, that of a race too."""


class Conclusion(msgspec.Struct, frozen=True, kw_only=True):
    step: str
    """``14.5 → 14.1 ms, −2.6 %, with one change``."""
    first: Change | None = None
    """What to do first, and where; ``None`` where no change alone is known to help."""
    without: str = ""
    """Why there is no first change."""
    recorded: str
    """``steps 72–74 of train: 400 steps, 88 % of the run (16.9 s)``."""
    idle: str
    """``44 % of the recorded step (76.9 of 175 ms): data loading 34 %, launching 4.7 %``."""
    finding: Finding | None = None
    """The one to begin with; ``None`` where no change is known to help."""
    has_steps: bool = True
    """Whether ``step`` is of a step, and not of the whole trace."""

    @property
    def change(self) -> str:
        """The first change in one line, or why there is none."""
        return self.first.said if self.first is not None else self.without

    @property
    def lines(self) -> tuple[tuple[str, str], ...]:
        """The lines in their order, each with its label."""
        return (
            ("step" if self.has_steps else "trace", self.step),
            ("first", self.change),
            ("recorded", self.recorded),
            ("idle", self.idle),
        )


def conclude(report: Report, verdict: Verdict | None = None) -> Conclusion:
    """What a reader of the report should know first. Where a gate fails, its findings come before all others."""
    if not report.traces:
        return Conclusion(step="not known", without="none", recorded="nothing", idle="not known: no trace was read")
    found = verdict.unexpected if verdict is not None and verdict.unexpected else choose_findings(report)
    listed = _best(found, report.traces, seldom=verdict is not None and bool(verdict.unexpected))
    best = listed if verdict is not None else begin_with_cause(listed, found, report.traces)
    if best is not None and verdict is None:
        best = _prefer_longest_phase(best, found, report.traces)
    if (
        best is not None
        and verdict is None
        and (_is_guess(best, report.traces[best.trace]) or _is_little_of_first_pass(best, report.traces[best.trace]))
    ):
        best = None
    trace = best.trace if best is not None else _idlest(report.traces)
    changes = count_changes(found)
    together = _measure_together(best, report, trace) if verdict is None and changes > 1 else None
    step = _describe_step(best, report.traces[trace], together, changes)
    step += _add_all(best, report, trace, changes) if verdict is None and changes > 1 and together is None else ""
    if len(report.traces) > 1:
        step = f"{label_by_number(report.traces)[trace]}: {step}"
    return Conclusion(
        step=step,
        first=None if best is None else describe_change(best, report.traces[trace], with_gain=together is not None),
        without="" if best is not None else explain_no_change(found, report, trace, all_help=_is_known_gain(together)),
        recorded=describe_part(report, trace),
        idle=_describe_idle(report, trace),
        finding=best,
        has_steps=bool(report.traces[trace].steps.count) or is_counted_only(report.traces[trace]),
    )


def _measure_together(best: Finding | None, report: Report, trace: int) -> Gain | None:
    """What all changes save, where that is worth telling: more than the ``best`` alone, of which no more is known, or
    1 % where none is."""
    together = measure_all(report)
    if together is None or not together.step_ms:
        return None
    gain = None if best is None or best.asks_for_more else measure_gain(best, report.traces[trace])
    if gain is None:
        return together if together.ms >= LOW * together.step_ms else None
    if together.is_bound and not gain.is_bound:
        return None
    return together if _exceeds(together, gain) else None


def _add_all(best: Finding | None, report: Report, trace: int, changes: int) -> str:
    """What all changes save of the recorded step, where the ``best`` alone is told of the step of the run, or is known
    where of all only a bound is, and saves a smaller share of that."""
    together, gain = measure_all(report), measure_gain(best, report.traces[trace]) if best is not None else None
    if together is None or gain is None or not together.step_ms or not gain.step_ms:
        return ""
    share = together.ms / together.step_ms
    if share < gain.ms / gain.step_ms + LOW:
        return ""
    every = "both" if changes == 2 else f"all {changes}"
    of = "" if gain.step_ms == together.step_ms else " of the recorded step"
    if together.is_bound:
        return f"; {describe_bound(together)}{of} with {every}"
    return f"; {describe_gain(together)}{of} with {every}" if of else ""


def _exceeds(together: Gain, gain: Gain) -> bool:
    """Whether all changes together save more of the same step than the first."""
    return gain.step_ms == together.step_ms and gain.ms < together.ms


def _best(found: Sequence[Finding], traces: Sequence[TraceInfo], *, seldom: bool) -> Finding | None:
    """The finding to begin with: the first that gains a share of the step that can be told. Where none has a known
    gain, the first of those of which it is not known, or that only ask for another recording. A note is no beginning,
    nor is a wait by design; what was counted in few steps or between them is one only where a gate fails for it
    (``seldom``). Collectives that come before all others are exposed for far longer than those gain (``ordered``)."""
    impacts = [(finding, describe_impact(finding, traces[finding.trace]).level) for finding in found]
    if impacts and impacts[0][1] == "unknown" and impacts[0][0].severity != "note" and is_exposed(impacts[0][0]):
        return impacts[0][0]
    told = [one for one, level in impacts if level in TOLD and _can_begin(one)]
    known = _prefer_known(told, traces)
    unknown = (finding for finding, level in impacts if level == "unknown" and _can_begin(finding))
    left = [finding for finding in unknown if seldom or not is_seldom(finding, traces)]
    if known is not None or not left:
        return known
    return left[0] if seldom else _not_a_trifle(left, traces)


def _not_a_trifle(unknown: Sequence[Finding], traces: Sequence[TraceInfo]) -> Finding:
    """The first, or where that is of a phase that no window recorded, and may save far less of the run than another,
    the one that may save most."""
    first, phase = unknown[0], phase_of(unknown[0], traces)
    if phase is None or phase.recorded or is_counted_only(traces[first.trace]):
        return first
    most = max(unknown, key=lambda finding: _most_of_run(finding, traces))
    return most if _most_of_run(most, traces) > FAR * _most_of_run(first, traces) else first


def _most_of_run(finding: Finding, traces: Sequence[TraceInfo]) -> float:
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
    if first is None or first.rule.startswith(RACES) or is_hidden(first) or _is_known(first, traces):
        return first
    least = NEARLY_AS_MUCH * _weigh_gain(first, traces)
    known = (one for one in told if _is_known(one, traces))
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
        most = max(held, key=lambda one: _most_of_run(one, traces), default=best)
        return most if _most_of_run(most, traces) > FAR * _most_of_run(best, traces) else best
    far_more = _is_known(best, traces) and _weigh_gain(best, traces) > FAR * _weigh_gain(other, traces)
    return best if far_more else other


def _weigh_gain(finding: Finding, traces: Sequence[TraceInfo]) -> float:
    return (gain(finding) or 0.0) * weigh(finding, traces)


def _is_known(finding: Finding, traces: Sequence[TraceInfo]) -> bool:
    return _is_known_gain(measure_gain(finding, traces[finding.trace]))


def _is_known_gain(gain: Gain | None) -> bool:
    return gain is not None and not gain.is_bound


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
    return bool(little) and not _lacks_warm_up(info)


def _idlest(traces: Sequence[TraceInfo]) -> int:
    return max(range(len(traces)), key=lambda number: share_of_idle(traces[number]) or 0.0, default=0)


def _describe_idle(report: Report, trace: int) -> str:
    info = report.traces[trace]
    if is_counted_only(info):
        return "not known: no window was recorded, waits were counted only"
    overlap, whole = info.overlap, find_whole(info)
    if overlap is None or not whole:
        but = " but collectives" if holds_collectives_alone(info) else ""
        return f"not known: the trace holds no device activity{but}"
    what = "recorded step" if info.steps.count else "device's time"
    of = span(milliseconds(overlap.idle_ms), " of ", milliseconds(whole))
    causes = sorted(overlap.idle_by_cause.items(), key=lambda pair: -pair[1])
    named = [
        f"{label_cause(cause, was_shared(info))} {percent(ms, whole)}"
        for cause, ms in causes[:MOST_CAUSES]
        if ms >= LEAST_SHARE * whole
    ]
    said = f"{percent(overlap.idle_ms, whole)} of the {what} ({of})" + (f": {', '.join(named)}" if named else "")
    alone = [
        f"{percent(ms, whole)} {label}"
        for label, ms in (("copies", overlap.copy_exposed_ms), ("collectives", overlap.comm_exposed_ms))
        if ms >= LEAST_SHARE * whole
    ]
    said += f"; {' and '.join(alone)} with no compute beside them" if alone else ""
    if len(report.traces) == 1:
        return said
    shares = [share for share in map(share_of_idle, report.traces) if share is not None]
    said = f"{label_by_number(report.traces)[trace]}: {said}"
    if len(shares) == 1:
        return said
    every = "both" if len(shares) == 2 else f"all {len(shares)}"
    least, most = percent(min(shares), 1.0), percent(max(shares), 1.0)
    between = span(least, " to ", most) if min(shares) >= LOW else f"{least} to {most}"
    spread = f"{between} in {len(shares)}" if least != most else f"the same in {every}"
    return f"{said}; {spread} traces"


def _describe_step(best: Finding | None, info: TraceInfo, together: Gain | None, changes: int) -> str:
    """What the step is now, and with the first change, or with all of them ``together``."""
    step_ms = find_step_ms(info)
    race = best is not None and best.rule.startswith(RACES)
    behind = "; results may be wrong until the first is made" if race else ""
    alone = measure_gain(best, info) if best is not None and not race else None
    gain = together or alone
    if together is None and best is not None and best.asks_for_more and alone is not None and alone.step_ms:
        now = f"{milliseconds(alone.step_ms)}{_base(info, None)}"
        return f"{now}; {describe_place(best)} takes at most {percent(alone.ms, alone.step_ms)} of it"
    if gain is None or gain.step_ms is None:
        now = (
            _of_run(info) if step_ms is None else f"{milliseconds(step_ms)}{_base(info, None)}{_beside(info, step_ms)}"
        )
        if info.run is not None and is_counted_only(info) and main_phase(info.run) is None:
            return _describe_waits(best, info.run)
        if best is None:
            return now
        doubt = (
            "results may be wrong until the first change is made"
            if race
            else "what the first change saves is not known"
        )
        return f"{now}; {doubt}"
    of_run = best if together is None and best is not None and best.run_saving_ms_per_step is not None else None
    every = "both changes" if changes == 2 else f"all {changes} changes"
    how = every if together is not None else "one change" if changes < 2 else "the first change"
    longer = tell_longer_steps(find_phase(info.run, info.phase), gain.step_ms)
    behind += f"; {longer}" if longer else ""
    if gain.is_bound:
        what = f"{every} save" if together is not None else "the first change saves"
        now = f"{milliseconds(gain.step_ms)}{_base(info, of_run)}"
        return f"{now}; what {what} is not known: {describe_bound(gain)} of it{behind}"
    before, after = milliseconds(gain.step_ms), milliseconds(max(gain.step_ms - gain.ms, 0.0))
    saved = f"−{percent(gain.ms, gain.step_ms)}{_doubt(gain)}"
    return f"{LEADS[gain.kind]}{span(before, ' → ', after)}{_base(info, of_run)}, {saved}, with {how}{behind}"


def _describe_waits(best: Finding | None, run: Run) -> str:
    """How often a run without steps waits, and at the first change."""
    of = f", {best.occurrences:,} of them at the first change" if best is not None and best.occurrences else ""
    return f"none could be told; {count_waits(run):,} waits in {seconds(run.seconds)}{of}"


def _of_run(info: TraceInfo) -> str:
    """The step of a run of which no step was recorded; without a run what the device's work spans."""
    phase = main_phase(info.run) if info.run else None
    known = phase.step_ms if phase else None
    if known is not None:
        return f"{milliseconds(known.typical)} (of the run)"
    whole = None if info.run else find_whole(info)
    return f"{milliseconds(whole)} (from the device's first work to its last)" if whole else "length not known"


def _base(info: TraceInfo, of_run: Finding | None) -> str:
    """Which step it is that has this length."""
    if of_run is not None:
        return " (of the run, with what it compiles)" if of_run.site_source == COMPILED else " (of the run)"
    if not info.steps.count:
        besides = " or warm-up" if _lacks_warm_up(info) else ""
        return f" (replayed without the profiler{besides})" if info.replay and info.replay.before else ""
    if info.steps.bare_ms is not None:
        return ""
    before = info.replay.before if info.replay and not outlasts_recorded(info) else None
    if before and (find_step_ms(info) or 0.0) > (1 + LEAST_SHARE) * (info.steps.profiled_ms or math.inf):
        return " (replayed, to the end of the device's work)"
    besides = " or warm-up" if _lacks_warm_up(info) else ""
    return f" (replayed without the profiler{besides})" if before else " (under the profiler)"


def _beside(info: TraceInfo, step_ms: float) -> str:
    """How long the steps of the phase take over the run, where the one of ``step_ms`` is unlike them."""
    phases = info.run.phases if info.run is not None else ()
    over_run = next((one.step_ms.typical for one in phases if one.name == info.phase and one.step_ms), step_ms)
    unlike = max(over_run, step_ms) > UNLIKE * min(over_run, step_ms)
    return f", {milliseconds(over_run)} over the run" if unlike else ""


def _lacks_warm_up(info: TraceInfo) -> bool:
    """Whether warm-up takes a part of the trace that can be told, and none of what was replayed."""
    warm_up, whole, replayed_ms = share_of_cause("warm-up", info), find_whole(info), find_step_ms(info)
    left = whole * (1 - warm_up) if whole else 0.0
    return warm_up >= LEAST_SHARE and replayed_ms is not None and replayed_ms <= left * (1 + LEAST_SHARE)


def _doubt(gain: Gain) -> str:
    """The range that a saving lies in, where it can be told from the saving itself."""
    if gain.kind not in ("known", "likely") or gain.low is None or gain.high is None:
        return ""
    low = "0" if not gain.step_ms or gain.low < LOW * gain.step_ms else percent(gain.low, gain.step_ms)
    high = percent(gain.high, gain.step_ms)
    return "" if low == high else f" ({span(low, ' to ', high)})"
