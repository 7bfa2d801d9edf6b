"""The lines that open every output: how long the step is and what it becomes, the change to make first, which part of
the program was recorded, and how idle the device is and why.

They are plain text and name what the traces name: each output escapes them.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from syncscope.report.cards import choose_findings, make_cards
from syncscope.report.finding_phrases import format_location
from syncscope.report.impact import Gain, describe_impact, measure_all, measure_gain
from syncscope.report.numbers import count, milliseconds, percent, span
from syncscope.report.recorded_part import describe_part
from syncscope.report.runs import is_counted_only, main_phase
from syncscope.report.trace_phrases import label_by_number, label_cause, was_shared
from syncscope.report.worth_phrases import find_step_ms, outlasts_recorded
from syncscope.schema.findings import COMPILED, NOTHING, RACES, Finding, is_exposed
from syncscope.schema.idle import main_cause
from syncscope.schema.report import Report, TraceInfo
from syncscope.schema.verdict import Verdict

LEADS: dict[str, str] = {"known": "", "likely": "about ", "at most": "at best ", "between": "at best "}
"""What comes before a saving, by how it is known."""
MOST_CAUSES = 3
"""Causes of idle time that are named; the report has all."""
MOST_SIGNS = 50
"""Of an expression in a line."""
LEAST_SHARE = 0.01
"""Of the step: causes of idle time that take less are not named."""
MOSTLY = 0.5
"""Of the step: where warm-up takes more, other steps have to be recorded before anything else."""


class Conclusion(msgspec.Struct, frozen=True, kw_only=True):
    step: str
    """``14.5 → 14.1 ms, −2.6 %, with one change``."""
    change: str
    """What to do first, and where."""
    recorded: str
    """``steps 72–74 of train: 400 steps, 88 % of the run (16.9 s)``."""
    idle: str
    """``44 % of the recorded step (76.9 of 175 ms): data loading 34 %, launching 4.7 %``."""
    finding: Finding | None = None
    """The one to begin with; ``None`` where no change is known to help."""
    has_steps: bool = True
    """Whether ``step`` is of a step, and not of the whole trace."""

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
        return Conclusion(step="not known", change="none", recorded="nothing", idle="not known: no trace was read")
    found = verdict.unexpected if verdict is not None and verdict.unexpected else choose_findings(report)
    best = _best(found, report.traces)
    trace = best.trace if best is not None else _idlest(report.traces)
    changes = len(make_cards(found))
    together = measure_all(report) if best is not None and verdict is None and changes > 1 else None
    if best is not None and together is not None and not _exceeds(together, measure_gain(best, report.traces[trace])):
        together = None
    step = _describe_step(best, report.traces[trace], together, changes)
    if len(report.traces) > 1:
        step = f"{label_by_number(report.traces)[trace]}: {step}"
    return Conclusion(
        step=step,
        change=_describe_change(best, found, report, trace, with_gain=together is not None),
        recorded=describe_part(report, trace),
        idle=_describe_idle(report, trace),
        finding=best,
        has_steps=bool(report.traces[trace].steps.count) or is_counted_only(report.traces[trace]),
    )


def _exceeds(together: Gain, gain: Gain | None) -> bool:
    """Whether all changes together are worth telling beside the first: they save more of the same step."""
    return gain is None or (gain.step_ms == together.step_ms and gain.ms < together.ms)


def describe_place(finding: Finding) -> str:
    """``train.py:21``; without a line the cause of idle time that its fix is for, the op or the name of the rule."""
    if finding.site is not None:
        return format_location(finding.site)
    if finding.causes:
        return (main_cause(finding) or finding.causes[0]).cause
    if finding.annotation:
        return f"{finding.op or finding.name} in {finding.annotation}"
    return f"{finding.op} (line unknown)" if finding.op else finding.name


def shorten_fix(fix: str) -> str:
    """The first thing that a fix says to do: up to its first full stop, semicolon or ``, or`` outside of brackets."""
    depth = 0
    for number, sign in enumerate(fix):
        depth += (sign in "([{") - (sign in ")]}")
        if depth <= 0 and fix.startswith((". ", "; ", ", or "), number):
            return fix[:number]
    return fix.removesuffix(".")


def _best(found: Sequence[Finding], traces: Sequence[TraceInfo]) -> Finding | None:
    """The finding to begin with: the first that gains a share of the step that can be told. Where none has a known
    gain, the first of those of which it is not known; a note is no beginning. Collectives that come before all others
    are exposed for far longer than those gain (``ordered``)."""
    impacts = [(finding, describe_impact(finding, traces[finding.trace]).level) for finding in found]
    if impacts and impacts[0][1] == "unknown" and impacts[0][0].severity != "note" and is_exposed(impacts[0][0]):
        return impacts[0][0]
    known = next((finding for finding, level in impacts if level in ("wrong", "high", "medium")), None)
    return known or next(
        (finding for finding, level in impacts if level == "unknown" and finding.severity != "note"), None
    )


def _idlest(traces: Sequence[TraceInfo]) -> int:
    return max(range(len(traces)), key=lambda number: _idle_share(traces[number]) or 0.0, default=0)


def _whole(info: TraceInfo) -> float | None:
    """The time that idle time is a share of, in ms: that of a recorded step, or of the whole trace."""
    if info.overlap is None:
        return None
    seen = info.overlap.device_busy_ms + info.overlap.idle_ms
    recorded = info.steps.profiled_ms if info.steps.count else None
    return recorded if recorded is not None and recorded >= info.overlap.idle_ms else seen


def _idle_share(info: TraceInfo) -> float | None:
    whole = _whole(info)
    return info.overlap.idle_ms / whole if info.overlap is not None and whole else None


def _describe_idle(report: Report, trace: int) -> str:
    info = report.traces[trace]
    if is_counted_only(info):
        return "not known: no window was recorded, waits were counted only"
    overlap, whole = info.overlap, _whole(info)
    if overlap is None or not whole:
        return "not known: the trace holds no device activity"
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
        f"{label} alone {percent(ms, whole)}"
        for label, ms in (("copies", overlap.copy_exposed_ms), ("collectives", overlap.comm_exposed_ms))
        if ms >= LEAST_SHARE * whole
    ]
    said += f"; {', '.join(alone)}" if alone else ""
    if len(report.traces) == 1:
        return said
    shares = [share for share in map(_idle_share, report.traces) if share is not None]
    said = f"{label_by_number(report.traces)[trace]}: {said}"
    if len(shares) == 1:
        return said
    every = "both" if len(shares) == 2 else f"all {len(shares)}"
    least, most = percent(min(shares), 1.0), percent(max(shares), 1.0)
    spread = f"{least} to {most} in {len(shares)}" if least != most else f"the same in {every}"
    return f"{said}; {spread} traces"


def _describe_change(
    best: Finding | None, found: Sequence[Finding], report: Report, trace: int, *, with_gain: bool
) -> str:
    """Where the first change is and what it is, ``with_gain`` with what it saves of the step alone."""
    if best is None:
        info = report.traces[trace]
        if _warm_up_share(info) >= MOSTLY:
            warm_up = percent(_warm_up_share(info), 1.0)
            return f"record later steps: {warm_up} of this time is warm-up, which they do not repeat"
        unseen = len({entry.rule for entry in report.not_checked if not (entry.partial or entry.needless)})
        some = f"; {count(unseen, 'rule')} could not be checked" if unseen else ""
        none = "nothing unexpected was found" if report.findings else "nothing was found"
        return ("no change is known to save 1 % of the step" if found else none) + some
    where, site = describe_place(best), best.site
    if site is not None and site.expression:
        where += f"  {_cut(site.expression)}"
    gain = measure_gain(best, report.traces[trace]) if with_gain and not best.rule.startswith(RACES) else None
    alone = f" ({LEADS[gain.kind]}−{percent(gain.ms, gain.step_ms)})" if gain is not None and gain.step_ms else ""
    return f"{where}{alone}: {shorten_fix(best.fix)}"


def _cut(expression: str) -> str:
    text = " ".join(expression.split()).removesuffix(":")
    return text if len(text) <= MOST_SIGNS else f"{text[: MOST_SIGNS - 1]}…"


def _describe_step(best: Finding | None, info: TraceInfo, together: Gain | None, changes: int) -> str:
    """What the step is now, and with the first change, or with all of them ``together``."""
    step_ms = find_step_ms(info)
    race = best is not None and best.rule.startswith(RACES)
    wrong = "; results may be wrong until the first is made" if race else ""
    gain = together or (measure_gain(best, info) if best is not None and not race else None)
    if best is None or gain is None or gain.step_ms is None:
        now = _of_run(info) if step_ms is None else f"{milliseconds(step_ms)}{_base(info, None)}"
        if best is None:
            return now
        doubt = (
            "results may be wrong until the first change is made"
            if race
            else "what the first change saves is not known"
        )
        return f"{now}; {doubt}"
    before, after = milliseconds(gain.step_ms), milliseconds(max(gain.step_ms - gain.ms, 0.0))
    of_run = best if together is None and best.run_saving_ms_per_step is not None else None
    how = f"all {changes} changes" if together is not None else "one change" if changes < 2 else "the first change"
    saved = f"−{percent(gain.ms, gain.step_ms)}{_doubt(gain)}"
    return f"{LEADS[gain.kind]}{span(before, ' → ', after)}{_base(info, of_run)}, {saved}, with {how}{wrong}"


def _of_run(info: TraceInfo) -> str:
    """The step of a run of which no step was recorded."""
    phase = main_phase(info.run) if info.run else None
    known = phase.step_ms if phase else None
    return "length not known" if known is None else f"{milliseconds(known.typical)} (of the run)"


def _base(info: TraceInfo, of_run: Finding | None) -> str:
    """Which step it is that has this length."""
    if of_run is not None:
        return " (of the run, with what it compiles)" if of_run.site_source == COMPILED else " (of the run)"
    if not info.steps.count:
        besides = " or warm-up" if _has_warm_up(info) else ""
        return f" (replayed without the profiler{besides})" if info.replay and info.replay.before else ""
    if info.steps.bare_ms is not None:
        return ""
    before = info.replay.before if info.replay and not outlasts_recorded(info) else None
    besides = " or warm-up" if _has_warm_up(info) else ""
    return f" (replayed without the profiler{besides})" if before else " (under the profiler)"


def _has_warm_up(info: TraceInfo) -> bool:
    """Whether warm-up takes a part of the trace that can be told."""
    return _warm_up_share(info) >= LEAST_SHARE


def _warm_up_share(info: TraceInfo) -> float:
    """Of the recorded step, or of the whole trace."""
    whole = _whole(info)
    return info.overlap.idle_by_cause.get("warm-up", 0.0) / whole if info.overlap and whole else 0.0


def _doubt(gain: Gain) -> str:
    if gain.kind != "likely" or gain.low is None or gain.high is None:
        return ""
    low = "0" if gain.low < NOTHING else percent(gain.low, gain.step_ms)
    return f" ({span(low, ' to ', percent(gain.high, gain.step_ms))})"
