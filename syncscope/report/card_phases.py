"""In which other phases of a program a card's line does the same, and on which traces. Not escaped."""

from __future__ import annotations

from syncscope.report.cards import Card
from syncscope.report.impact import describe_impact
from syncscope.report.run_phrases import describe_frequency
from syncscope.report.trace_phrases import label_by_number
from syncscope.schema.findings import Finding
from syncscope.schema.report import Report

TOLD = ("wrong", "high", "medium")
"""Impacts that are told of another phase, too."""
MOST_PHASES = 3
"""Other phases of a line that are told one by one."""


def describe_phase(finding: Finding, report: Report) -> str:
    """What a finding does in its phase: ``in evaluate: about 4.8 a step, saves about 30 %``."""
    often = describe_frequency(finding, report.traces, brief=True) or ""
    impact = describe_impact(finding, report.traces[finding.trace])
    saves = impact.words if impact.level in TOLD else ""
    where = "" if finding.phase is None or finding.phase in often else f"in {finding.phase}: "
    return where + ", ".join(filter(None, (often, saves, finding.exceeds)))


def describe_other_phases(card: Card, report: Report) -> str | None:
    """``also in evaluate: about 4.8 a step, saves about 30 %; in start: once``; ``None`` without other phases."""
    said = [describe_phase(finding, report) for finding in card.others]
    if not said:
        return None
    more = len(said) - MOST_PHASES
    return f"also {'; '.join(said[:MOST_PHASES])}" + (f"; in {more} more phases" if more > 0 else "")


def name_other_phases(card: Card) -> str | None:
    """The same in few words: ``also in evaluate and start``."""
    names = [finding.phase for finding in card.others if finding.phase]
    if not names:
        return None
    if len(names) > MOST_PHASES:
        return f"also in {names[0]} and {len(names) - 1} more phases"
    return f"also in {' and '.join(filter(None, (', '.join(names[:-1]), names[-1])))}"


def describe_traces(card: Card, report: Report, *, shown: bool) -> list[str]:
    """On which of several traces a card is: ``on 2 of 4 traces``, or with the one that is ``shown``. Nothing where
    phases alone tell the traces apart: the phase is told by what occurs in it."""
    traces, lead = report.traces, card.lead
    alike = sum(info.phase == traces[lead.trace].phase for info in traces)
    if len(traces) == 1 or (alike == 1 and lead.phase is not None):
        return []
    label = label_by_number(traces)[lead.trace]
    if card.traces == 1:
        return [f"on {label}"]
    if not shown:
        return [] if card.traces == alike else [f"on {card.traces} of {alike} traces"]
    return [f"on {card.traces} of {alike} traces, {label} shown"]
