"""What the HTML page shows as a card: which findings it is about, its address, and its text to be copied."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import msgspec

from syncscope.report.card_phases import describe_phase
from syncscope.report.cards import Card, choose_findings, make_cards
from syncscope.report.hand_over import Sources, write_markdown, write_prompt
from syncscope.report.picture.lanes import Lanes
from syncscope.report.picture.of_trace import find_picture
from syncscope.report.prominence import KINDS, find_kind, is_unseen
from syncscope.schema.report import Report


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
    markdown: str
    prompt: str


def view_cards(report: Report, lanes: Sequence[Lanes]) -> tuple[CardView, ...]:
    """All findings as cards, in the report's order, but as in a terminal those that save little and those outside of
    the steps behind the others; those that only sum others up come last."""
    number = {id(finding): place for place, finding in enumerate(report.findings)}
    chosen = {id(finding) for finding in choose_findings(report)}
    taken: Counter[str] = Counter()
    views: list[tuple[tuple[object, ...], CardView]] = []
    for card in make_cards(report.findings):
        lead = card.lead
        taken[lead.fingerprint] += 1
        again = f"-{taken[lead.fingerprint]}" if taken[lead.fingerprint] > 1 else ""
        picture = find_picture(report.traces[lead.trace], lanes)
        known: Sources = {} if picture is None else lanes[picture].sources
        view = CardView(
            id=f"finding-{lead.fingerprint}{again}",
            groups=tuple(tuple(number[id(finding)] for finding in group) for group in card.groups),
            phases=tuple((one.phase or "", describe_phase(one, report)) for one in (lead, *card.others) if card.others),
            sums_up=_sums_up(card, chosen),
            markdown=write_markdown(card, report, known),
            prompt=write_prompt(card, report, known),
        )
        views.append(((view.sums_up, *_rank(card, report)), view))
    return tuple(view for _, view in sorted(views, key=lambda pair: pair[0]))


def _rank(card: Card, report: Report) -> tuple[bool, int, bool]:
    """What may stay comes last, in the report's order."""
    if card.lead.status != "unexpected":
        return True, 0, False
    return False, KINDS.index(find_kind(card, report)), is_unseen(card, report)


def _sums_up(card: Card, chosen: set[int]) -> bool:
    return card.lead.status == "unexpected" and not any(id(finding) in chosen for finding in card.findings)
