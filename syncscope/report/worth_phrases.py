"""What several outputs say of savings: of a finding, of a cause of idle time, of all findings together."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from syncscope.report.device_time import find_whole, share_of_cause
from syncscope.report.numbers import between, milliseconds, percent
from syncscope.report.trace_phrases import was_shared
from syncscope.schema.findings import COMPILED, NOTHING, Finding, IdleCause
from syncscope.schema.idle import label_cause
from syncscope.schema.report import Report, TraceInfo

UNTOLD = "less than can be told (under 1 %)"
"""A saving that is a smaller share of the step than that by which the same program differs from one time it is measured
to the next."""

MUCH = 0.1
"""Share of idle time from which on a cause of it is told though nobody knows what it saves."""

LOW = 0.01
"""Share of the step under which a saving is low, and of all changes together only the most is told."""

NO_SHORTER = "nothing: the step gets no shorter"

WIDE, PART = 0.1, 0.5
"""A saving is told with its range where that is wider than this share of the step, and begins below this part of the
saving: where one of five steps has most of it, say."""

MISSES = 0.1
"""Share of the recorded step by which a replay that is longer is of no step of it."""


def describe_saving(finding: Finding, info: TraceInfo | None = None) -> list[str]:
    """``saves 0.3 ms (2 %)`` of a recorded step, ``saves at most 3 ms``, or that it is less than can be told; nothing
    where it is unknown. The share of the step is left out without the finding's trace."""
    return [f"saves {amount}" for amount in _amounts(finding, info)]


def describe_amount(finding: Finding, info: TraceInfo) -> str | None:
    """``describe_saving`` without its verb; ``None`` where it is unknown."""
    return next(iter(_amounts(finding, info)), None)


def find_step_of_run(finding: Finding, info: TraceInfo) -> float | None:
    """The mean step of a finding's phase over the run, in ms; ``None`` where it was not measured. For what is compiled
    it is a median step, in which nothing is, and what the finding takes."""
    phases = info.run.phases if info.run else ()
    step = next((one.step_ms for one in phases if one.name == finding.phase), None)
    if step is None:
        return None
    if finding.site_source != COMPILED:
        return step.typical
    return step.median + (finding.run_stall_ms_per_step or 0.0)


def describe_all(report: Report, step: str) -> list[str]:
    """What all findings of the report's one trace are worth together, of a ``step`` in words: what those likely save of
    which more than a bound is known, and the most with the others: ``saves 0.3 ms (2 %) a step, at most 3 ms (20 %)
    with those of which only a bound is known``."""
    info = report.traces[0] if len(report.traces) == 1 else None
    step_ms, ms = find_step_ms(info) if info else None, report.saving_all_ms_per_step
    low, most = report.saving_all_low_ms_per_step, report.saving_all_high_ms_per_step
    likely, high = report.likely_saving_all_ms_per_step, report.likely_saving_all_high_ms_per_step
    if ms is not None and not is_firm(ms, low, most if high is None else high, step_ms, info):
        ms, likely = None, ms
    if _is_nothing(most):
        return [f"saves {NO_SHORTER}"]
    bounded = high is not None and most is not None and milliseconds(most) != milliseconds(high)
    if report.saving_all_below_drift and not bounded and not _is_nothing(high):
        return [f"saves {UNTOLD} {step}"]
    if _is_nothing(ms):
        ms = None
    if ms is None and likely is not None and likely < max(LOW * (step_ms or 0.0), NOTHING):
        likely, low = None, 0.0
    if report.saving_all_below_drift or (likely if ms is None else ms) is None:
        return [f"saves {amount} {step}" for amount in _format(None, low, most, None, step_ms)]
    said = [f"saves {amount} {step}" for amount in _format(ms, low, most if high is None else high, likely, step_ms)]
    if not bounded or most is None:
        return said
    at_most = f"at most {milliseconds(most)}{_of_step(most, step_ms)}"
    return [f"{one}, {at_most} with those of which only a bound is known" for one in said]


LEAST_ASKED = 0.01
"""A change that no finding speaks of is told of where it saves this share of the bare step."""


def answer_asked(info: TraceInfo) -> Iterator[str]:
    """What changes would save that no finding speaks of, a sentence each, where that is something. Not escaped."""
    bare, step = info.steps.bare_ms, "step" if info.run is None else "recorded step"
    for asked in info.replay.asked if info.replay else ():
        saving = asked.saving_ms_per_step
        if saving is not None and bare and saving >= LEAST_ASKED * bare:
            change = asked.question[:1].upper() + asked.question[1:]
            low, high = asked.saving_low_ms_per_step, asked.saving_high_ms_per_step
            amount = milliseconds(saving)
            if low is not None and high is not None and not is_firm(saving, low, high, bare, info):
                amount = f"about {amount}, {between(low, high)},"
            yield f"{change} would save {amount} a {step} ({percent(saving, bare)})."


def describe_causes(finding: Finding, report: Report) -> list[str]:
    """What each cause of a finding about idle time is worth, in one sentence: ``data loading: saves about 44 ms (28 %);
    wait: 3 ms, see SYN102 (train.py:21)``. Of one whose saving is not known it is how long it takes, where that is
    much: ``queued but held back: 41 ms``. Nothing where that is all there is to tell, which the message tells, too."""
    said = [_describe_cause(cause, finding, report) for cause in finding.causes]
    if not any(said):
        return []
    info = report.traces[finding.trace]
    told = (one or _describe_length(cause, finding, info) for cause, one in zip(finding.causes, said, strict=True))
    return ["; ".join(one for one in told if one)]


def find_step_ms(info: TraceInfo) -> float | None:
    """The length of the step that savings are shares of: the bare one where it is known, else the mean of those that
    were replayed, unless that cannot be."""
    if info.steps.bare_ms is not None:
        return info.steps.bare_ms
    if outlasts_recorded(info):
        return info.steps.profiled_ms
    if info.replay is not None and info.replay.step_ms is not None:
        return info.replay.step_ms
    before = info.replay.before if info.replay else None
    return before.step_ms if before else info.steps.profiled_ms


def outlasts_recorded(info: TraceInfo) -> bool:
    """Whether the replay of a step, which is without the profiler, misses the recorded one and takes longer."""
    recorded_ms, replay = info.steps.profiled_ms, info.replay
    if recorded_ms is None or replay is None or replay.step_ms is None or replay.misfit is None:
        return False
    return replay.misfit > MISSES and replay.step_ms > (1 + MISSES) * recorded_ms


def _amounts(finding: Finding, info: TraceInfo | None) -> list[str]:
    if finding.saving_below_drift and not _is_nothing(finding.saving_high_ms_per_step):
        return [UNTOLD]
    return _describe_amount(finding, info)


def _describe_amount(worth: Finding | IdleCause, info: TraceInfo | None) -> list[str]:
    ms, low, high = worth.saving_ms_per_step, worth.saving_low_ms_per_step, worth.saving_high_ms_per_step
    likely, step_ms = worth.likely_saving_ms_per_step, find_step_ms(info) if info else None
    if ms is not None and not is_firm(ms, low, high, step_ms, info):
        ms, likely = None, ms
    return _format(ms, low, high, likely, step_ms)


def _format(
    ms: float | None, low: float | None, high: float | None, likely: float | None, step_ms: float | None
) -> list[str]:
    if _is_nothing(high):
        return [NO_SHORTER]
    if ms is not None:
        return [f"{milliseconds(ms)}{_of_step(ms, step_ms)}"]
    if low is None or high is None:
        return []
    if likely is not None and not _is_nothing(likely):
        return [f"about {milliseconds(likely)} ({_share(likely, step_ms)}{between(low, high)})"]
    most = f"at most {milliseconds(high)}{_of_step(high, step_ms)}"
    return [most if _is_nothing(low) else f"{between(low, high)}{_of_step(high, step_ms, 'up to ')}"]


def is_doubted(info: TraceInfo | None) -> bool:
    """Whether the trace's replay does not meet its steps, so that a saving is told with its range."""
    return info is not None and info.replay is not None and bool(info.replay.doubt)


def is_firm(ms: float, low: float | None, high: float | None, step_ms: float | None, info: TraceInfo | None) -> bool:
    """Whether a saving of a step can be told without its range."""
    if is_doubted(info):
        return False
    return low is None or high is None or not step_ms or high - low <= WIDE * step_ms or low >= PART * ms


def range_of_run(finding: Finding) -> tuple[float, float] | None:
    """What a finding saves at least and at most in ms a step of the run, where the saving of the recorded step has a
    range."""
    of_run, low, high = finding.run_saving_ms_per_step, finding.saving_low_ms_per_step, finding.saving_high_ms_per_step
    ms = finding.saving_ms_per_step if finding.saving_ms_per_step is not None else finding.likely_saving_ms_per_step
    if of_run is None or low is None or high is None or not ms:
        return None
    return low * of_run / ms, high * of_run / ms


def _is_nothing(ms: float | None) -> bool:
    return ms is not None and ms < NOTHING


def _of_step(ms: float, step_ms: float | None, before: str = "") -> str:
    return f" ({before}{percent(ms, step_ms)})" if step_ms else ""


def _share(ms: float, step_ms: float | None) -> str:
    return f"{percent(ms, step_ms)}; " if step_ms else ""


def _describe_cause(cause: IdleCause, finding: Finding, report: Report) -> str | None:
    """What one cause saves; ``None`` where its saving is not known, or nothing, and no other finding is about it."""
    if cause.covered_by:
        names = _name_findings(cause.covered_by, finding, report.findings)
        return f"{cause.cause}: {milliseconds(cause.ms_per_step)}, {names}"
    amounts = _describe_amount(cause, report.traces[finding.trace])
    nothing = cause.saving_high_ms_per_step if cause.saving_ms_per_step is None else cause.saving_ms_per_step
    return f"{cause.cause}: saves {amounts[0]}" if amounts and not _is_nothing(nothing) else None


def _describe_length(cause: IdleCause, finding: Finding, info: TraceInfo) -> str | None:
    """How long one cause takes of whose saving nothing is known; ``None`` where that is little."""
    known = cause.covered_by or _describe_amount(cause, info)
    if known or cause.ms_per_step < MUCH * (finding.idle_ms_per_step or math.inf):
        return None
    return f"{label_cause(cause.cause, was_shared(info))}: {milliseconds(cause.ms_per_step)}"


def _name_findings(fingerprints: Sequence[str], finding: Finding, findings: Sequence[Finding]) -> str:
    """``see SYN102, CPY201``: findings of the same trace."""
    rules = [one.rule for one in findings if one.trace == finding.trace and one.fingerprint in fingerprints]
    return f"see {', '.join(dict.fromkeys(rules))}" if rules else "which another finding is about"


def lacks_warm_up(info: TraceInfo) -> bool:
    """Whether warm-up takes a part of the trace that can be told, and none of what was replayed."""
    warm_up, whole, replayed_ms = share_of_cause("warm-up", info), find_whole(info), find_step_ms(info)
    left = whole * (1 - warm_up) if whole else 0.0
    return warm_up >= LOW and replayed_ms is not None and replayed_ms <= left * (1 + LOW)
