"""Causes of idle time whose saving is known, of findings whose own fix only asks for another recording."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from msgspec.structs import replace

from syncscope.advice import choose
from syncscope.report.impact import measure_gain
from syncscope.report.worth_phrases import LOW
from syncscope.schema.findings import RACES, Finding, gain, is_exposed
from syncscope.schema.order import weigh
from syncscope.schema.report import TraceInfo


def begin_with_cause(best: Finding | None, found: Sequence[Finding], traces: Sequence[TraceInfo]) -> Finding | None:
    """The finding to begin with: ``best``, or where that gains more, one cause alone of a finding whose fix only asks
    for another recording, with the fix of that cause. A race stays the first, and so do collectives and copies of
    unknown gain that came before all that is known."""
    if best is not None and (best.rule.startswith(RACES) or (is_exposed(best) and gain(best) is None)):
        return best
    causes = (cause for one in found if one.asks_for_more for cause in _alone(one, traces[one.trace]))
    known = [] if best is None or best.asks_for_more else [best]
    return max((*known, *causes), key=lambda one: (gain(one) or 0.0) * weigh(one, traces), default=best)


def _alone(finding: Finding, info: TraceInfo) -> Iterator[Finding]:
    """The finding as if each of its causes that no other finding is about, and whose saving is known, were all of it:
    of those that save 1 % of the step or more."""
    known = [one for one in finding.causes if not one.covered_by and one.likely_saving_ms_per_step is not None]
    if not known:
        return
    from syncscope.rules.base.idle_advice import ADVICE  # a saved report is read without the rules

    for cause in known:
        advice = choose((one for one in ADVICE if not one.asks_for_more), cause.cause.split())
        if advice is None:
            continue
        alone = replace(
            finding, site=cause.site, at=cause.at, causes=(cause,), fix=advice.sentence, asks_for_more=False,
            saving_ms_per_step=cause.saving_ms_per_step, saving_low_ms_per_step=cause.saving_low_ms_per_step,
            saving_high_ms_per_step=cause.saving_high_ms_per_step,
            likely_saving_ms_per_step=cause.likely_saving_ms_per_step, saving_null_why=cause.saving_null_why,
        )  # fmt: skip
        saved = measure_gain(alone, info)
        if saved is not None and saved.step_ms and saved.ms >= LOW * saved.step_ms:
            yield alone
