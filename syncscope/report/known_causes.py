"""What no finding leads with, and yet saves most: causes of idle time whose saving is known, of findings whose own fix
is for another cause or only asks for another recording, and workers of the loader, of which the replay is asked alone.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from msgspec.structs import replace

from syncscope.advice import Advice, choose
from syncscope.report.finding_phrases import format_location
from syncscope.report.impact import find_told_cause, measure_gain
from syncscope.report.trace_phrases import was_shared
from syncscope.report.worth_phrases import LOW
from syncscope.schema.findings import RACES, Finding, IdleCause, gain, is_exposed
from syncscope.schema.idle import label_cause, main_cause, without_beside
from syncscope.schema.order import weigh
from syncscope.schema.report import TraceInfo

LOADING, WORKERS = "data loading", "workers"
"""The cause that more workers of the loader leave out, and how the question that asks for them ends."""
MORE = 1.1
"""Workers, and causes beside that of a finding's fix, come first where they save so many times what else comes first
does."""


def begin_with_cause(best: Finding | None, found: Sequence[Finding], traces: Sequence[TraceInfo]) -> Finding | None:
    """The finding to begin with: ``best``, or where that gains more, one cause alone of a finding whose fix is for
    another or only asks for another recording, with the fix of that cause. A race stays the first, and so do
    collectives and copies of unknown gain that came before all that is known."""
    if best is not None and (best.rule.startswith(RACES) or (is_exposed(best) and gain(best) is None)):
        return best
    causes = [cause for one in found if one.asks_for_more for cause in _alone(one, traces[one.trace])]
    known = [] if best is None or best.asks_for_more else [best]

    def worth(one: Finding) -> float:
        return (gain(one) or 0.0) * weigh(one, traces)

    first = max((*known, *causes), key=worth, default=best)
    least = MORE * max(map(worth, (*known, *causes)), default=0.0)
    workers = [one for idle in found if idle.causes for one in _with_workers(idle, traces[idle.trace])]
    beside = [cause for one in found if not one.asks_for_more for cause in _beside(one, traces[one.trace])]
    return max((one for one in (*beside, *workers) if worth(one) > least), key=worth, default=first)


def list_fixes(finding: Finding, info: TraceInfo) -> list[tuple[str, str]]:
    """What to do about a finding, each with the cause of idle time that it is for: ``""`` for all of it. Where another
    cause than that of its fix is told to save something, what to do about that comes first, if it is known."""
    told, main = find_told_cause(finding, info), main_cause(finding)
    if told is None or main is None or told[0].cause == main.cause:
        return [("", finding.fix)]
    cause, gain = told
    advice = None if gain.is_bound else _advise(cause.cause)
    label = label_cause(main.cause, was_shared(info))
    if advice is None:
        return [(label, finding.fix)]
    at = f" at {format_location(cause.site)}" if cause.site is not None else ""
    return [(f"{cause.cause}{at}", advice.sentence), (label, without_beside(finding.fix, cause.cause))]


def describe_fixes(finding: Finding, info: TraceInfo) -> str:
    """The same in one text."""
    return " ".join(f"For {cause}: {fix}" if cause else fix for cause, fix in list_fixes(finding, info))


def _beside(finding: Finding, info: TraceInfo) -> Iterator[Finding]:
    """The causes of a finding but the one that its fix is for, each alone, where that saves 1 % of the step or more for
    certain."""
    main = main_cause(finding)
    others = (one for one in _alone(finding, info) if main is None or one.causes[0].cause != main.cause)
    return (one for one in others if _is_certain(one, info))


def _is_certain(finding: Finding, info: TraceInfo) -> bool:
    saved = measure_gain(finding, info)
    least = 0.0 if saved is None else saved.ms if saved.low is None else saved.low
    return bool(saved is not None and saved.step_ms and least >= LOW * saved.step_ms)


def _with_workers(finding: Finding, info: TraceInfo) -> Iterator[Finding]:
    """A finding about idle time as if it were about the loader alone, where more workers save 1 % of the step or more
    for certain: that is asked of the step without the profiler, which may wait for the loader where the recorded one
    does not."""
    asked = (one for one in (info.replay.asked if info.replay else ()) if one.question.endswith(WORKERS))
    known = [one for one in asked if one.saving_ms_per_step is not None]
    fix = _advise(LOADING)
    if not known or fix is None:
        return
    for one in known:
        loading = IdleCause(
            cause=LOADING, ms_per_step=one.saving_ms_per_step or 0.0, saving_ms_per_step=one.saving_ms_per_step,
            saving_low_ms_per_step=one.saving_low_ms_per_step, saving_high_ms_per_step=one.saving_high_ms_per_step,
            likely_saving_ms_per_step=one.saving_ms_per_step,
        )  # fmt: skip
        alone = _only(finding, loading, fix.sentence)
        if _is_certain(alone, info):
            yield alone


def _alone(finding: Finding, info: TraceInfo) -> Iterator[Finding]:
    """The finding as if each of its causes that no other finding is about, and whose saving is known, were all of it:
    of those that save 1 % of the step or more."""
    known = [one for one in finding.causes if not one.covered_by and one.likely_saving_ms_per_step is not None]
    if not known:
        return
    for cause in known:
        advice = _advise(cause.cause)
        if advice is None:
            continue
        alone = _only(finding, cause, advice.sentence)
        saved = measure_gain(alone, info)
        if saved is not None and saved.step_ms and saved.ms >= LOW * saved.step_ms:
            yield alone


def _advise(cause: str) -> Advice | None:
    from syncscope.rules.base.idle_advice import ADVICE  # a saved report is read without the rules

    return choose((one for one in ADVICE if not one.asks_for_more), cause.split())


def _only(finding: Finding, cause: IdleCause, fix: str) -> Finding:
    """A finding about idle time with one cause, and what that saves."""
    return replace(
        finding, site=cause.site, at=cause.at, causes=(cause,), fix=fix, asks_for_more=False,
        saving_ms_per_step=cause.saving_ms_per_step, saving_low_ms_per_step=cause.saving_low_ms_per_step,
        saving_high_ms_per_step=cause.saving_high_ms_per_step, saving_below_drift=False,
        likely_saving_ms_per_step=cause.likely_saving_ms_per_step, saving_null_why=cause.saving_null_why,
    )  # fmt: skip
