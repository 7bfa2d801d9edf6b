"""What the HTML page shows as a card: which findings it is about, its address, and its text to be copied."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import msgspec

from syncscope.report.card_phases import describe_phase
from syncscope.report.cards import Card, choose_findings, lead_with, make_cards
from syncscope.report.families import find_family
from syncscope.report.hand_over import Sources, write_markdown, write_prompt
from syncscope.report.headings import describe_heading
from syncscope.report.picture.lanes import Lanes
from syncscope.report.picture.of_trace import find_picture
from syncscope.report.prominence import KINDS, find_kind, is_unseen
from syncscope.schema.findings import Finding
from syncscope.schema.report import Report

LEAST_FAMILY = 3
"""Cards that are one change are folded into one from so many on."""


class CardView(msgspec.Struct, frozen=True, kw_only=True):
    """One card. Numbers of findings are indices into ``Report.findings``."""

    id: str
    """Its address on the page: ``finding-`` and the fingerprint of the finding that it shows."""
    groups: tuple[tuple[int, ...], ...]
    """A group for each rule, the one that gains most first; in a group the same finding of each trace and phase."""
    phases: tuple[tuple[str, str], ...]
    """Of a line in several phases each with what it does there; the first is the one that is shown."""
    sums_up: bool
    """Whether it only sums up what other cards are about."""
    heading: str
    """What it and the cards after it with the same heading have in common; ``""`` for those at the top."""
    follows: bool
    """Whether it is the same change as the card before it, at another line of the file, and is folded behind that."""
    markdown: str
    prompt: str


def view_cards(report: Report, lanes: Sequence[Lanes], first_change: Finding | None) -> tuple[CardView, ...]:
    """All findings as cards, in the report's order. As in a terminal, that of ``first_change`` comes before the others,
    and those that save little and those outside of the steps behind them; those that only sum others up come last."""
    number = {id(finding): place for place, finding in enumerate(report.findings)}
    chosen = {id(finding) for finding in choose_findings(report)}
    taken: Counter[str] = Counter()
    cards = lead_with(first_change, make_cards(report.findings))
    families, headings = _number_families(cards, report), _head_kinds(cards, report)
    views: list[tuple[tuple[object, ...], CardView]] = []
    for place, card in enumerate(cards):
        lead, first = card.lead, families.get(place, place)
        taken[lead.fingerprint] += 1
        again = f"-{taken[lead.fingerprint]}" if taken[lead.fingerprint] > 1 else ""
        picture = find_picture(report.traces[lead.trace], lanes)
        known: Sources = {} if picture is None else lanes[picture].sources
        view = CardView(
            id=f"finding-{lead.fingerprint}{again}",
            groups=tuple(tuple(number[id(finding)] for finding in group) for group in card.groups),
            phases=tuple((one.phase or "", describe_phase(one, report)) for one in (lead, *card.others) if card.others),
            sums_up=_sums_up(card, chosen),
            heading=_heading(card, report, headings, sums_up=_sums_up(card, chosen)),
            follows=first != place,
            markdown=write_markdown(card, report, known),
            prompt=write_prompt(card, report, known),
        )
        views.append(((view.sums_up, *_rank(card, report), first), view))
    return tuple(view for _, view in sorted(views, key=lambda pair: pair[0]))


def _number_families(cards: Sequence[Card], report: Report) -> dict[int, int]:
    """For each card of a family (numbered as in ``cards``) the first of it. Two cards are not worth folding."""
    members: dict[object, list[int]] = {}
    for number, card in enumerate(cards):
        family = find_family(card, report)
        if family is not None:
            members.setdefault(family, []).append(number)
    return {number: mine[0] for mine in members.values() if len(mine) >= LEAST_FAMILY for number in mine}


def _head_kinds(cards: Sequence[Card], report: Report) -> tuple[str, ...]:
    """The headings of the kinds of cards, in their order."""
    own = [card for card in cards if card.lead.status == "unexpected"]
    return tuple(
        describe_heading(kind, [card for card in own if find_kind(card, report) == kind], report) for kind in KINDS
    )


def _heading(card: Card, report: Report, headings: Sequence[str], *, sums_up: bool) -> str:
    if sums_up:
        return "Sums up the cards above"
    if card.lead.status != "unexpected":
        return "Expected, or in the baseline"
    heading = headings[KINDS.index(find_kind(card, report))]
    return heading[:1].upper() + heading[1:]


def _rank(card: Card, report: Report) -> tuple[bool, int, bool]:
    """What may stay comes last, in the report's order."""
    if card.lead.status != "unexpected":
        return True, 0, False
    return False, KINDS.index(find_kind(card, report)), is_unseen(card, report)


def _sums_up(card: Card, chosen: set[int]) -> bool:
    return card.lead.status == "unexpected" and not any(id(finding) in chosen for finding in card.findings)
