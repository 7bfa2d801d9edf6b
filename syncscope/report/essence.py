"""A report as a cell of a notebook shows it: what to know first, and a table of the findings. No scripts, no styles of
its own but a few borders, so that it fits into any theme."""

from __future__ import annotations

from html import escape

from syncscope.report.cards import Card, choose_findings, make_cards
from syncscope.report.conclusion import conclude
from syncscope.report.escape import terminal
from syncscope.report.finding_phrases import describe_occurrences, format_place
from syncscope.report.impact import describe_impact
from syncscope.report.known_causes import describe_fixes
from syncscope.report.trace_phrases import group_losses
from syncscope.report.verdict_phrases import summarize_report
from syncscope.schema.report import Report

MOST_ROWS = 20
"""Findings shown; the page has all."""
CELL = ' style="text-align: left; vertical-align: top; overflow-wrap: anywhere; min-width: 10em"'
FIRST = ' style="text-align: left; vertical-align: top; white-space: nowrap"'


def render(report: Report) -> str:
    """A fragment of HTML."""
    lost = [f"<p><b>not all was seen</b> {_shown(text)}</p>" for text, _ in group_losses(report)]
    opening = "<br>".join(f"<b>{label}</b> {_shown(said)}" for label, said in conclude(report).lines)
    cards = make_cards(choose_findings(report))
    rows = [_row(_cells(card, report)) for card in cards]
    head = "".join(f"<th{CELL}>{name}</th>" for name in ("impact", "line", "what happens", "what to do"))
    table = f"<table><thead><tr>{head}</tr></thead><tbody>{''.join(rows[:MOST_ROWS])}</tbody></table>" if rows else ""
    more = f"<p>… and {len(rows) - MOST_ROWS} more</p>" if len(rows) > MOST_ROWS else ""
    return f"<div>{''.join(lost)}<p>{opening}</p>{table}{more}<p>{_shown(summarize_report(report))}</p></div>"


def _row(cells: tuple[str, ...]) -> str:
    first, *others = cells
    return f"<tr><td{FIRST}>{first}</td>{''.join(f'<td{CELL}>{cell}</td>' for cell in others)}</tr>"


def _cells(card: Card, report: Report) -> tuple[str, ...]:
    finding = card.lead
    impact = describe_impact(finding, report.traces[finding.trace])
    amount = f"<br>{_shown(impact.amount)}" if impact.amount else ""
    rules = "<br>".join(f"{_shown(rule)} {_shown(name)}" for rule, name in card.tags)
    place = _shown(format_place(finding, report.traces[finding.trace]))
    if finding.site and finding.site.expression:
        place += f"<br>{_code(finding.site.expression)}"
    often = describe_occurrences(finding, report.traces)
    told = _shown(finding.message) + (f"<br>{_shown(often)}" if often else "")
    fix = describe_fixes(finding, report.traces[finding.trace])
    return f"<b>{_shown(impact.words)}</b>{amount}<br>{rules}", place, told, _shown(fix)


def _shown(text: str) -> str:
    return escape(terminal(text))


def _code(text: str) -> str:
    return f"<code>{_shown(text)}</code>"
