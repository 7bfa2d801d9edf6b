"""Changes that save more together than the sum of what each saves alone: where a step waits at several lines, one that
is left holds the host as well."""

from __future__ import annotations

from syncscope.report.cards import choose_findings, make_cards
from syncscope.report.numbers import milliseconds
from syncscope.report.worth_phrases import find_step_ms
from syncscope.schema.report import Report

TIMES, SHARE = 1.5, 0.02
"""Together they save so many times the sum, and more than it by this share of the step."""


def explain_joint(report: Report) -> str | None:
    """``one by one they save 3.5 ms in sum: a wait that is left holds the host as well``; ``None`` where they save
    about as much together, or that is not known."""
    if len(report.traces) != 1 or report.saving_all_below_drift:
        return None
    together = report.saving_all_ms_per_step
    together = report.likely_saving_all_ms_per_step if together is None else together
    step_ms = find_step_ms(report.traces[0])
    if together is None or not step_ms:
        return None
    leads = [card.lead for card in make_cards(choose_findings(report))]
    if any(
        lead.per_step and lead.saving_high_ms_per_step is None and lead.saving_ms_per_step is None for lead in leads
    ):
        return None  # together they may save what is not known of one of them
    alone = sum(lead.saving_ms_per_step or lead.likely_saving_ms_per_step or 0.0 for lead in leads)
    if together < TIMES * alone or together - alone < SHARE * step_ms:
        return None
    return f"one by one they save {milliseconds(alone)} in sum: a wait that is left holds the host as well"
