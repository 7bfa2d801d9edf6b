"""Cards that are one change: lines of one file with the same rules and the same fix, of which each says little."""

from __future__ import annotations

from collections.abc import Iterable

from syncscope.report.cards import Card
from syncscope.report.finding_phrases import describe_much
from syncscope.report.prominence import find_kind, is_unseen
from syncscope.schema.report import Report


def find_family(card: Card, report: Report) -> object | None:
    """What the cards of a family have in common; ``None`` of a card that is shown for itself: because it saves or
    blocks much, has no line, or may stay."""
    lead = card.lead
    kind, unseen = find_kind(card, report), is_unseen(card, report)
    if lead.site is None or lead.status != "unexpected" or (kind == "whole" and not unseen):
        return None
    if describe_much(lead, report.traces):
        return None
    return kind, unseen, card.tags, lead.fix, lead.site.file, lead.phase, lead.trace


def list_lines(cards: Iterable[Card], beside: int | None) -> list[int]:
    """The lines of cards in their order, each once, without the one ``beside`` which they stand."""
    numbers = (card.lead.site.line for card in cards if card.lead.site is not None)
    return sorted({number for number in numbers if number is not None and number != beside})
