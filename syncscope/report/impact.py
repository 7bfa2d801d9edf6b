"""What a finding means to a reader: its impact. The gate's status and the severity are other marks."""

from __future__ import annotations

from typing import Literal

import msgspec

from syncscope.report.numbers import between, milliseconds, percent
from syncscope.report.runs import main_phase
from syncscope.report.worth_phrases import LOW, find_step_ms, find_step_of_run, is_firm, range_of_run
from syncscope.schema.findings import NOTHING, RACES, Finding, IdleCause
from syncscope.schema.report import Report, TraceInfo

Level = Literal["wrong", "high", "medium", "low", "unknown"]
"""``wrong``: a race, which makes results wrong. ``high`` saves 10 % of the step or more, ``low`` less than 1 %.
``unknown``: also of what only asks for another recording, whatever it may save at most."""

HIGH = 0.1
MOSTLY_BOUND = 0.5
"""Where what is known of all changes together is less than this share of the most that they save, that is told."""
BEFORE = {"known": "", "likely": "about ", "at most": "at most ", "between": "up to "}
"""What comes before a saving, by how it is known."""


class Impact(msgspec.Struct, frozen=True, kw_only=True):
    level: Level
    words: str
    """``saves 2.6 %``, ``saves about 30 %``, ``saves at most 15 %``, ``saves under 1 %``, ``saves nothing``,
    ``results may be wrong``, ``saving not known``."""
    amount: str | None = None
    """The same as a time: ``0.371 ms``, ``2.69 ms, 0 to 5.51 ms``. Where the run was counted, with the step that it is
    of: ``0.371 ms a step of the run``, ``12.6 ms a recorded step``, ``5.15 ms a step of evaluate``."""


class Gain(msgspec.Struct, frozen=True, kw_only=True):
    """What fixing a finding saves, in ms of the step that it is a part of: the mean step of its phase over the run
    where that is known, else the step without the profiler, or as it was replayed."""

    ms: float
    low: float | None = None
    high: float | None = None
    kind: Literal["known", "likely", "at most", "between"]
    step_ms: float | None

    @property
    def is_bound(self) -> bool:
        """Whether ``ms`` is only the most that it may be."""
        return self.kind in ("at most", "between")


def measure_gain(finding: Finding, info: TraceInfo) -> Gain | None:
    """What fixing a finding saves, as far as it is known; ``None`` unknown."""
    if finding.run_saving_ms_per_step is not None:
        ms, (low, high) = finding.run_saving_ms_per_step, range_of_run(finding) or (None, None)
        step_ms = find_step_of_run(finding, info)
        return Gain(ms=ms, low=low, high=high, kind=_kind(ms, low, high, step_ms, info), step_ms=step_ms)
    return measure_recorded_gain(finding, info)


def _kind(
    ms: float, low: float | None, high: float | None, step_ms: float | None, info: TraceInfo
) -> Literal["known", "likely"]:
    return "known" if is_firm(ms, low, high, step_ms, info) else "likely"


def measure_recorded_gain(finding: Finding, info: TraceInfo) -> Gain | None:
    """What fixing a finding saves of the recorded step; ``None`` unknown."""
    return _gain(
        finding.saving_ms_per_step, finding.saving_low_ms_per_step, finding.saving_high_ms_per_step,
        finding.likely_saving_ms_per_step, info,
    )  # fmt: skip


def _gain(
    ms: float | None, low: float | None, high: float | None, likely: float | None, info: TraceInfo
) -> Gain | None:
    """A saving of the recorded step, as far as it is known."""
    step_ms = find_step_ms(info)
    if ms is not None:
        return Gain(ms=ms, low=low, high=high, kind=_kind(ms, low, high, step_ms, info), step_ms=step_ms)
    if low is None or high is None:
        return None
    if likely is not None and (likely >= NOTHING or high < NOTHING):
        return Gain(ms=likely, low=low, high=high, kind="likely", step_ms=step_ms)
    return Gain(ms=high, low=low, high=high, kind="at most" if low < NOTHING else "between", step_ms=step_ms)


def measure_all(report: Report) -> Gain | None:
    """What all changes together save, which is known of a report's only trace; ``None`` where it is nothing. Where some
    have only a bound, it is what the others likely save, or the most that there is, whichever counts for more; but what
    only asks for another recording is no change."""
    if len(report.traces) != 1:
        return None
    (info,) = report.traces
    low, most = report.saving_all_low_ms_per_step, report.saving_all_high_ms_per_step
    high = report.likely_saving_all_high_ms_per_step
    ms, likely = report.saving_all_ms_per_step, report.likely_saving_all_ms_per_step
    gain = _gain(ms, low, most if high is None else high, likely, info)
    if any(finding.asks_for_more for finding in report.findings):
        return gain if gain is not None and gain.kind in ("known", "likely") and gain.ms >= NOTHING else None
    if gain is not None and high is not None and most is not None and MOSTLY_BOUND * most > gain.ms:
        gain = _gain(None, low, most, None, info)
    return gain if gain is not None and gain.ms >= NOTHING else None


def describe_impact(finding: Finding, info: TraceInfo) -> Impact:
    """The impact of a finding, as every output words it."""
    gain = measure_gain(finding, info)
    if finding.rule.startswith(RACES):
        return Impact(level="wrong", words="results may be wrong")
    if gain is None:
        return _impact_of_cause(finding, info)
    most = gain.ms if gain.high is None else gain.high
    unsure = finding.saving_below_drift and (finding.saving_high_ms_per_step or 0.0) >= NOTHING
    if most < NOTHING and not unsure:
        return Impact(level="low", words="saves nothing")
    if finding.saving_below_drift and (finding.run_saving_ms_per_step is None or most < NOTHING):
        return Impact(level="low", words="saves under 1 %")
    share = gain.ms / gain.step_ms if gain.step_ms else None
    before = BEFORE[gain.kind]
    amount = _amount(gain) + _describe_base(finding, info)
    if share is None:
        return Impact(level="unknown", words=f"saves {before}{milliseconds(gain.ms)}")
    if share < LOW:
        return Impact(level="low", words="saves under 1 %", amount=amount)
    level: Level = "unknown" if finding.asks_for_more else "high" if share >= HIGH else "medium"
    return Impact(level=level, words=f"saves {before}{percent(gain.ms, gain.step_ms)}", amount=amount)


def find_told_cause(finding: Finding, info: TraceInfo) -> tuple[IdleCause, Gain] | None:
    """Of a finding whose own saving is not known the cause of idle time that is told instead: the one by which it is
    placed, or the one that saves most at most. ``None`` where that is under 1 % of the step, or not known."""
    if measure_gain(finding, info) is not None:
        return None
    own = [one for one in finding.causes if not one.covered_by]
    known = [one for one in own if (one.likely_saving_ms_per_step or 0.0) >= NOTHING]
    cause = max(known, key=lambda one: one.likely_saving_ms_per_step or 0.0, default=None)
    if cause is None:
        cause = max(own, key=lambda one: one.saving_high_ms_per_step or 0.0, default=None)
    if cause is None:
        return None
    gain = _gain(
        cause.saving_ms_per_step, cause.saving_low_ms_per_step, cause.saving_high_ms_per_step,
        cause.likely_saving_ms_per_step, info,
    )  # fmt: skip
    return None if gain is None or not gain.step_ms or gain.ms < LOW * gain.step_ms else (cause, gain)


def _impact_of_cause(finding: Finding, info: TraceInfo) -> Impact:
    told = find_told_cause(finding, info)
    if told is None:
        return Impact(level="unknown", words="saving not known")
    cause, gain = told
    words = f"{cause.cause} alone saves {BEFORE[gain.kind]}{percent(gain.ms, gain.step_ms)}"
    return Impact(level="unknown", words=words, amount=_amount(gain) + _describe_base(finding, info))


def _describe_base(finding: Finding, info: TraceInfo) -> str:
    """Which step a saving is of, where the run was counted, too."""
    if finding.run_saving_ms_per_step is not None:
        main = main_phase(info.run) if info.run is not None else None
        other = finding.phase is not None and main is not None and finding.phase != main.name
        return f" a step of {finding.phase}" if other else " a step of the run"
    counted = info.run is not None or finding.run_per_step is not None
    return " a recorded step" if counted and info.steps.count else ""


def _amount(gain: Gain) -> str:
    if gain.kind == "likely" and gain.low is not None and gain.high is not None:
        amount, low, high = map(milliseconds, (gain.ms, gain.low, gain.high))
        return amount if amount == low == high else f"{amount}, {between(gain.low, gain.high)}"
    if gain.kind == "between" and gain.low is not None and gain.high is not None:
        return between(gain.low, gain.high)
    return milliseconds(gain.ms)
