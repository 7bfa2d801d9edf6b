"""How much room a card gets, and which comes first: the same in a terminal and on the page."""

from __future__ import annotations

from typing import Literal

from syncscope.report.cards import Card
from syncscope.report.finding_phrases import describe_much
from syncscope.report.impact import describe_impact, measure_gain
from syncscope.report.runs import is_counted_only, is_outside_steps, is_seldom
from syncscope.report.worth_phrases import LOW, find_step_ms
from syncscope.schema.findings import COUNTED, Finding
from syncscope.schema.order import RARE
from syncscope.schema.report import Report, TraceInfo

Kind = Literal["whole", "counted", "outside", "small"]
"""A card in full; one of those of which nothing but their number is known, because no window recorded them; of those
that were counted outside of all steps or in few of them, or of those that save little."""
KINDS: tuple[Kind, ...] = ("whole", "counted", "outside", "small")
"""In the order in which they are shown."""


def find_kind(card: Card, report: Report) -> Kind:
    """Where a card is shown: by what it saves, and whether that can be told."""
    finding, info = card.lead, report.traces[card.lead.trace]
    level = describe_impact(finding, info).level
    if level == "unknown" and (is_outside_steps(finding, report.traces) or is_seldom(finding, report.traces)):
        return "outside"
    if _is_rare(card, report):
        return "outside"
    if is_unseen(card, report) and not is_counted_only(info):
        return "counted"
    return "small" if level == "low" or _blocks_little(finding, info) else "whole"


def is_unseen(card: Card, report: Report) -> bool:
    """Whether a line was only counted in the steps, and blocks for little of one as far as that is known: all that is
    told of it fits into a line."""
    finding = card.lead
    level = describe_impact(finding, report.traces[finding.trace]).level
    counted = finding.site_source == COUNTED or (finding.per_step == 0 and finding.run_per_step is not None)
    return level == "unknown" and counted and not describe_much(finding, report.traces)


def _is_rare(card: Card, report: Report) -> bool:
    """Whether such a line waits in less than every second step."""
    often = card.lead.run_per_step
    return often is not None and often < RARE and is_unseen(card, report)


def _blocks_little(finding: Finding, info: TraceInfo) -> bool:
    """Whether a note of unknown saving blocks the host for under 1 % of the step, so that it saves no more."""
    blocked = finding.stall_ms if finding.stall_ms_per_step is None else finding.stall_ms_per_step
    step_ms = find_step_ms(info)
    if finding.severity != "note" or measure_gain(finding, info) is not None or blocked is None or not step_ms:
        return False
    return blocked < LOW * step_ms
