"""Changes that save more together than the sum of what each saves alone, or less: where a step waits at several lines,
one that is left holds the host as well, or each of them alone keeps the host from running ahead."""

from __future__ import annotations

from syncscope.report.cards import choose_findings, make_cards
from syncscope.report.numbers import milliseconds
from syncscope.report.worth_phrases import find_step_ms
from syncscope.schema.report import Report

TIMES, SHARE = 1.5, 0.02
"""Together they save so many times the sum, or the sum is so many times that, and the one is more than the other by
this share of the step."""


def explain_joint(report: Report) -> str | None:
    """``one by one they save 3.5 ms in sum: a wait that is left holds the host as well``; ``None`` where they save
    about as much together or less, or that is not known."""
    sums = _add_up(report)
    if sums is None:
        return None
    together, alone, step_ms, all_known = sums
    if not all_known or together < TIMES * alone or together - alone < SHARE * step_ms:
        return None
    return f"one by one they save {milliseconds(alone)} in sum: a wait that is left holds the host as well"


def explain_sum(report: Report) -> str | None:
    """The same where they save far less together: ``one by one they save 281 ms in sum: most of it is the same time``,
    as where each of two waits keeps the host from running ahead."""
    sums = _add_up(report)
    if sums is None:
        return explain_joint(report)
    together, alone, step_ms, _ = sums
    if alone < TIMES * together or alone - together < SHARE * step_ms:
        return explain_joint(report)
    return f"one by one they save {milliseconds(alone)} in sum: most of it is the same time"


def _add_up(report: Report) -> tuple[float, float, float, bool] | None:
    """What the changes of a report's only trace save together, and in sum alone, of a step of so many milliseconds, and
    whether that of each is known; ``None`` where it is not known what they save together."""
    if len(report.traces) != 1 or report.saving_all_below_drift:
        return None
    together = report.saving_all_ms_per_step
    together = report.likely_saving_all_ms_per_step if together is None else together
    step_ms = find_step_ms(report.traces[0])
    if together is None or not step_ms:
        return None
    leads = [card.lead for card in make_cards(choose_findings(report))]
    unknown = any(
        lead.per_step and lead.saving_high_ms_per_step is None and lead.saving_ms_per_step is None for lead in leads
    )  # together they may save what is not known of one of them
    alone = sum(lead.saving_ms_per_step or lead.likely_saving_ms_per_step or 0.0 for lead in leads)
    return together, alone, step_ms, not unknown
