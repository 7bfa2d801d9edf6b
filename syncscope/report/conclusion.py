"""The lines that open every output: how long the step is and what it becomes, the change to make first, which part of
the program was recorded, and how idle the device is and why.

They are plain text and name what the traces name: each output escapes them.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import msgspec

from syncscope.report.cards import choose_findings, count_changes
from syncscope.report.device_time import find_whole, share_of_idle
from syncscope.report.first_change import (
    LEADS,
    Change,
    describe_bound,
    describe_change,
    describe_gain,
    describe_place,
    is_hidden,
)
from syncscope.report.first_finding import choose_first, find_first
from syncscope.report.impact import Gain, measure_all, measure_gain
from syncscope.report.new_loader import find_new_loader
from syncscope.report.no_change import explain_no_change
from syncscope.report.numbers import milliseconds, percent, seconds, span
from syncscope.report.phase_lines import tell_steps_of_run
from syncscope.report.recorded_part import describe_part
from syncscope.report.runs import (
    count_waits,
    find_phase,
    holds_collectives_alone,
    is_counted_only,
    main_phase,
)
from syncscope.report.trace_phrases import label_by_number, was_shared
from syncscope.report.worth_phrases import LOW, find_step_ms, lacks_warm_up, outlasts_recorded
from syncscope.schema.findings import COMPILED, RACES, Finding
from syncscope.schema.idle import label_cause
from syncscope.schema.report import Report, TraceInfo
from syncscope.schema.run import Run
from syncscope.schema.verdict import Verdict

MOST_CAUSES = 3
"""Causes of idle time that are named; the report has all."""
LEAST_SHARE = 0.01
"""Of the step: causes of idle time that take less are not named."""

BESIDE = " while others use the device"
"""What follows the bound of launches whose cost another process on the device hides."""

UNLIKE = 1.5
"""A step that takes so many times as long as those of the run, or they as it, is told beside theirs."""


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
    trace: int = 0
    """The trace that all of this is about."""
    finding: Finding | None = None
    """The one to begin with; ``None`` where no change is known to help, or where ``first`` is about no finding."""
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
    if verdict is None:
        best = choose_first(found, report.traces)
    else:
        best = find_first(found, report.traces, seldom=bool(verdict.unexpected))
    trace = best.trace if best is not None else _idlest(report.traces)
    anew = find_new_loader(best, report.traces, trace) if verdict is None else None
    best = best if anew is None else None
    changes = count_changes(found)
    together = _measure_together(best, report, trace) if verdict is None and changes > 1 and anew is None else None
    step = _describe_step(best, report.traces[trace], together, changes)
    step += _add_all(best, report, trace, changes) if verdict is None and changes > 1 and together is None else ""
    step += f"; {anew[1]}" if anew is not None else ""
    if len(report.traces) > 1:
        step = f"{label_by_number(report.traces)[trace]}: {step}"
    change = None if anew is None else anew[0]
    if best is not None:
        change = describe_change(best, report.traces[trace], with_gain=together is not None)
    return Conclusion(
        step=step,
        first=change,
        without="" if change is not None else explain_no_change(found, report, trace, all_help=_is_known(together)),
        recorded=describe_part(report, trace),
        idle=_describe_idle(report, trace),
        trace=trace,
        finding=best,
        has_steps=bool(report.traces[trace].steps.count) or is_counted_only(report.traces[trace]),
    )


def _is_known(saved: Gain | None) -> bool:
    return saved is not None and not saved.is_bound


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


def _idlest(traces: Sequence[TraceInfo]) -> int:
    """The trace on which the device is idle for most: of the run, where the share of its phase is known."""

    def idle(number: int) -> float:
        info = traces[number]
        phase = find_phase(info.run, info.phase)
        return (share_of_idle(info) or 0.0) * (phase.share if phase is not None else 1.0)

    return max(range(len(traces)), key=idle, default=0)


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
        return f"{now}; {describe_place(best, info)} takes at most {percent(alone.ms, alone.step_ms)} of it"
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
    first_site = best.site if best is not None else None
    phase = find_phase(info.run, info.phase) if of_run is None else None  # else the step is that of the run
    of_run_steps = tell_steps_of_run(phase, gain.step_ms, first_site)
    behind += f"; {of_run_steps}" if of_run_steps else ""
    if gain.is_bound:
        what = f"{every} save" if together is not None else "the first change saves"
        now = f"{milliseconds(gain.step_ms)}{_base(info, of_run)}"
        beside = BESIDE if together is None and best is not None and is_hidden(best) else ""
        return f"{now}; what {what} is not known: {describe_bound(gain)} of it{beside}{behind}"
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
        besides = " or warm-up" if lacks_warm_up(info) else ""
        return f" (replayed without the profiler{besides})" if info.replay and info.replay.before else ""
    if info.steps.bare_ms is not None:
        return ""
    before = info.replay.before if info.replay and not outlasts_recorded(info) else None
    if before and (find_step_ms(info) or 0.0) > (1 + LEAST_SHARE) * (info.steps.profiled_ms or math.inf):
        return " (replayed, to the end of the device's work)"
    besides = " or warm-up" if lacks_warm_up(info) else ""
    return f" (replayed without the profiler{besides})" if before else " (under the profiler)"


def _beside(info: TraceInfo, step_ms: float) -> str:
    """How long the steps of the phase take over the run, where the one of ``step_ms`` is unlike them."""
    phases = info.run.phases if info.run is not None else ()
    over_run = next((one.step_ms.typical for one in phases if one.name == info.phase and one.step_ms), step_ms)
    unlike = max(over_run, step_ms) > UNLIKE * min(over_run, step_ms)
    return f", {milliseconds(over_run)} over the run" if unlike else ""


def _doubt(gain: Gain) -> str:
    """The range that a saving lies in, where it can be told from the saving itself."""
    if gain.kind not in ("known", "likely") or gain.low is None or gain.high is None:
        return ""
    low = "0" if not gain.step_ms or gain.low < LOW * gain.step_ms else percent(gain.low, gain.step_ms)
    high = percent(gain.high, gain.step_ms)
    return "" if low == high else f" ({span(low, ' to ', high)})"
