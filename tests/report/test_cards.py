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


def test_a_late_rank_that_holds_others_for_longer_than_the_rest_gains_leads_the_card() -> None:
    late = sample.finding("DST601", "straggling-sync", 31, EXPRESSION)
    exposed = sample.finding("OVL302", "comm-not-overlapped", 31, EXPRESSION, saving=0.8)
    held = [related(exposed, moved(late, exposed_ms_per_step=ms)) for ms in (5.0, 0.5)]
    assert [rules(make_cards(findings)) for findings in held] == [[["DST601", "OVL302"]], [["OVL302", "DST601"]]]


def test_a_line_in_several_phases_is_one_card_that_shows_where_it_weighs_most() -> None:
    train, evaluate, start = (
        [moved(one, phase=phase) for one in related(WAIT, COPY)] for phase in ("train", "evaluate", "start")
    )
    (card,) = make_cards([*train, *evaluate, start[1]])
    assert rules([card]) == [["SYN101", "CPY201"]]
    assert (card.lead.phase, [one.phase for one in card.others]) == ("train", ["evaluate", "start"])
    assert (len(card.findings), card.traces) == (5, 1)
    again = moved(evaluate[0], count=9)
    assert len(make_cards([*train, evaluate[0], again])) == 2, "two of one phase stay two"
    assert len(make_cards([train[0], moved(evaluate[0], status="expected")])) == 2


def test_a_line_in_the_steps_is_shown_there_though_it_was_counted_outside_of_them_too() -> None:
    unknown = {"saving_ms_per_step": None, "site_source": "count", "per_step": None, "run_steps": None}
    between, step = [[moved(one, phase=phase) for one in related(WAIT, COPY)] for phase in ("epoch end", "train")]
    (card,) = make_cards([*(moved(one, **unknown) for one in between), *step])
    assert (card.lead.phase, [one.phase for one in card.others]) == ("train", ["epoch end"])


def test_idle_time_of_several_phases_stays_several_cards() -> None:
    idle = moved(WAIT, site=None, at=None, causes=(IdleCause(cause="wait", ms_per_step=1.0),))
    assert len(make_cards([moved(idle, phase=phase) for phase in ("train", "evaluate")])) == 2


def test_where_no_gain_is_known_the_most_severe_finding_leads() -> None:
    unknown = {"saving_ms_per_step": None, "saving_low_ms_per_step": None, "saving_high_ms_per_step": None}
    wait, copy = related(moved(WAIT, severity="error", **unknown), moved(COPY, severity="warning", **unknown))
    assert rules(make_cards([copy, wait])) == [["SYN101", "CPY201"]]
    assert rules(make_cards([moved(copy, saving_ms_per_step=0.1), wait])) == [["CPY201", "SYN101"]]


def test_a_rank_that_recorded_a_wait_is_shown_before_one_whose_windows_met_none() -> None:
    counted = moved(WAIT, saving_ms_per_step=None, site_source="count", per_step=0.0, run_steps=2, phase="train")
    recorded = moved(WAIT, trace=1, rank=1, severity="note", phase="train")
    (card,) = make_cards([counted, recorded])
    assert card.lead.rank == 1 and card.traces == 2
