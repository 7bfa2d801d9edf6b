"""What a card says of the other phases that its line is in, and of the traces of its phase."""

from __future__ import annotations

import msgspec

from syncscope.report.card_phases import count_traces, describe_other_phases, describe_traces
from syncscope.report.cards import Card, make_cards
from syncscope.schema.report import Report
from tests.report import sample

WAIT = sample.finding("SYN101", "blocking-copy", 31, "batch.to(device)", stall=2.0, saving=1.0)


def in_phases(*phases: str, ranks: int = 1) -> tuple[Card, Report]:
    """The card of a line in several phases, which each of several ranks has a trace of."""
    where = [(rank, phase) for rank in range(ranks) for phase in phases]
    infos = [
        msgspec.structs.replace(sample.trace_info(f"{phase}{rank}.json", rank), phase=phase) for rank, phase in where
    ]
    found = [
        msgspec.structs.replace(WAIT, trace=number, rank=rank, phase=phase)
        for number, (rank, phase) in enumerate(where)
    ]
    report = sample.report(infos, found)
    (card,) = make_cards(report.findings)
    return card, report


def test_one_phase_beyond_those_that_are_told_is_one_more_phase() -> None:
    four, five, six = (describe_other_phases(*in_phases(*"abcdef"[:phases])) or "" for phases in (4, 5, 6))
    assert "more phase" not in four
    assert five.endswith("; in 1 more phase") and six.endswith("; in 2 more phases")


def test_traces_of_other_phases_are_not_among_those_that_a_card_is_on() -> None:
    card, report = in_phases("train", "evaluate", ranks=2)
    assert count_traces(card, report) == "on 2 of 2 traces"
    assert describe_traces(card, report, shown=True) == ["on 2 of 2 traces, rank 0 train shown"]
    assert count_traces(*in_phases("train", "evaluate")) is None
