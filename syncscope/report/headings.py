"""What the cards that get little room have in common: the heading above them in a terminal and on the page."""

from __future__ import annotations

from collections.abc import Iterable

from syncscope.report.cards import Card
from syncscope.report.finding_phrases import describe_much
from syncscope.report.joint import explain_joint
from syncscope.report.prominence import Kind
from syncscope.schema.report import Report

HEADINGS: dict[Kind, str] = {
    "whole": "",
    "counted": "counted, but in no recorded step: saving not known",
    "outside": "outside of the steps or in few of them: saving not known",
    "small": "each saves under 1 %",
}
JOINT = "each saves under 1 % alone, all of them together more: a wait that is left holds the host as well"
BLOCKS = ", however long it blocks (without it the host waits elsewhere)"
"""Where a line that saves little blocks the host for much of the step."""


def describe_heading(kind: Kind, cards: Iterable[Card], report: Report) -> str:
    """The heading of all ``cards`` of a kind; ``""`` for those that have room."""
    if kind != "small":
        return HEADINGS[kind]
    if explain_joint(report):
        return JOINT
    much = any("blocked" in said for card in cards for said in describe_much(card.lead, report.traces))
    return HEADINGS[kind] + (BLOCKS if much else "")
