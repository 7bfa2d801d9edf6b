"""One place, one card."""

from __future__ import annotations

from typing import Any

import msgspec

from syncscope.report.cards import Card, choose_findings, make_cards
from syncscope.schema.findings import Finding, IdleCause
from tests.report import sample

EXPRESSION = "batch.to(device)"
WAIT = sample.finding("SYN101", "blocking-copy", 31, EXPRESSION, stall=2.0, saving=1.0)
COPY = sample.finding("CPY201", "pageable-copy", 31, EXPRESSION, saving=0.9)
EXPOSED = sample.finding("OVL301", "copy-not-overlapped", 31, EXPRESSION, saving=0.8)


def related(*findings: Finding) -> list[Finding]:
    """The findings, each related to all others."""
    prints = [finding.fingerprint for finding in findings]
    return [
        msgspec.structs.replace(one, related=tuple(own for own in prints if own != one.fingerprint)) for one in findings
    ]


def rules(cards: list[Card]) -> list[list[str]]:
    return [[rule for rule, _ in card.tags] for card in cards]


def moved(finding: Finding, **changes: Any) -> Finding:
    return msgspec.structs.replace(finding, **changes)


def test_a_pageable_blocking_copy_is_one_card_with_the_fix_that_gains_most() -> None:
    (card,) = make_cards(related(WAIT, COPY, EXPOSED))
    assert rules([card]) == [["SYN101", "CPY201", "OVL301"]]
    assert card.lead.rule == "SYN101"
    assert len(card.findings) == 3


def test_other_places_phases_and_causes_have_cards_of_their_own() -> None:
    wait, copy = related(WAIT, COPY)
    assert len(make_cards([WAIT, COPY])) == 2, "not related"
    assert len(make_cards([wait, moved(copy, site=None)])) == 2
    assert len(make_cards([wait, moved(copy, phase="evaluate")])) == 2
    assert len(make_cards([wait, moved(copy, status="expected")])) == 2
    assert len(make_cards([wait, moved(copy, rule="HAZ402")])) == 2
    assert len(make_cards([wait, moved(copy, causes=(IdleCause(cause="wait", ms_per_step=1.0),))])) == 2


def test_two_findings_of_a_rule_stay_two() -> None:
    first, second = related(WAIT, moved(WAIT, fingerprint="f" * 16))
    assert len(make_cards([first, second])) == 2


def test_the_same_place_on_several_ranks_is_one_card() -> None:
    both = [moved(one, trace=trace, rank=trace) for trace in (0, 1) for one in related(WAIT, COPY)]
    (card,) = make_cards(both)
    assert rules([card]) == [["SYN101", "CPY201"]]
    assert card.traces == 2


def test_what_only_sums_up_others_has_no_card_beside_them() -> None:
    sums_up = moved(EXPOSED, rule="OVL303", sums_up=True, related=(WAIT.fingerprint,))
    assert choose_findings(sample.report(found=[WAIT, sums_up])) == [WAIT]
    assert choose_findings(sample.report(found=[sums_up])) == [sums_up]
    assert choose_findings(sample.report(found=[moved(WAIT, status="expected"), sums_up])) == [sums_up]


def test_a_late_rank_without_a_line_has_a_card_of_its_own_where_what_waits_for_it_gains_something() -> None:
    late = sample.finding("DST601", "straggling-sync", 31, EXPRESSION)
    assert rules(make_cards(related(WAIT, late))) == [["SYN101", "DST601"]], "its wait is at the line"
    nowhere = moved(late, site=None, at=None)
    gains = sample.finding("OVL302", "comm-not-overlapped", 31, EXPRESSION, saving=0.001)
    assert rules(make_cards(related(moved(gains, site=None, at=None), nowhere))) == [["OVL302"], ["DST601"]]
    waits = sample.finding("OVL302", "comm-not-overlapped", 31, EXPRESSION)
    assert rules(make_cards(related(nowhere, moved(waits, site=None, at=None)))) == [["DST601", "OVL302"]]
