"""Annotations for GitHub Actions: workflow commands, one a line, that the runner shows at the lines they name.

Only what a reader should act on: with a verdict what fails the gate, else the unexpected findings. GitHub shows ten
errors, ten warnings and ten notices of a step, so the heaviest come first.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Literal

from syncscope.report.card_phases import count_traces, name_other_phases
from syncscope.report.cards import Card, choose_findings, make_cards
from syncscope.report.escape import command, command_property, terminal
from syncscope.report.finding_phrases import describe_finding, describe_occurrences, format_place
from syncscope.report.impact import Level as Weight
from syncscope.report.impact import describe_impact
from syncscope.report.known_causes import describe_fixes
from syncscope.report.repository import in_repository
from syncscope.report.trace_phrases import group_losses, group_warnings, join_labels
from syncscope.report.verdict_phrases import (
    describe_baseline,
    describe_stale,
    explain_how_to_allow,
    group_by_reason,
    summarize_report,
    summarize_verdict,
)
from syncscope.schema.report import Report
from syncscope.schema.verdict import Verdict

Level = Literal["error", "warning", "notice"]
LEVELS: dict[Weight, Level] = {
    "wrong": "error",
    "high": "warning",
    "medium": "warning",
    "unknown": "warning",
    "low": "notice",
}
"""How loud a finding is without a gate. What fails a gate is an error."""


def render(report: Report, verdict: Verdict | None = None, *, base: str = "") -> str:
    """The commands, and below them what to do next and how it ended.

    ``base`` is the project's folder in the repository.
    """
    lines = _found(report, base) if verdict is None else _against(verdict, report, base)
    level: Level = "warning" if verdict is not None and verdict.allow_partial else "error"
    unread = [_command(level, "not read", f"{entry.path}: {entry.why}") for entry in report.unread]
    lost = [_warning("not all was seen", text, where) for text, where in group_losses(report)]
    warnings = [_warning("syncscope", text, where) for text, where in group_warnings(report)]
    endings = [summarize_report(report)] if verdict is None else _endings(verdict, report)
    return "\n".join([*lost, *lines, *unread, *warnings, *(f"syncscope: {terminal(text)}" for text in endings)]) + "\n"


def _warning(title: str, text: str, labels: Sequence[str]) -> str:
    return _command("warning", title, f"{text} ({join_labels(labels)})" if labels else text)


def _endings(verdict: Verdict, report: Report) -> list[str]:
    allow = [explain_how_to_allow(verdict)] if verdict.unexpected else []
    baseline = [text for text in (describe_baseline(verdict),) if text]
    return [*baseline, *allow, summarize_verdict(verdict, report)]


def _found(report: Report, base: str) -> Iterator[str]:
    for card in make_cards(choose_findings(report)):
        impact = describe_impact(card.lead, report.traces[card.lead.trace])
        yield _finding(card, LEVELS[impact.level], report, base)
    for entry in report.stale:
        yield _at("warning", entry.where, f"{entry.rule} stale expectation", describe_stale(entry), base)


def _against(verdict: Verdict, report: Report, base: str) -> Iterator[str]:
    for card in make_cards(verdict.unexpected):
        yield _finding(card, "error", report, base)
    for entry in verdict.stale:
        yield _at("error", entry.where, f"{entry.rule} stale expectation", describe_stale(entry), base)
    for budget in (*verdict.exceeded, *verdict.unchecked_budgets):
        yield _command("error", f"budget {budget.outcome}: {budget.title}", budget.message)
    for text in verdict.baseline.differs if verdict.baseline else ():
        yield _command("warning", "other recordings than those of the baseline", text)
    for (why, _), rules in group_by_reason(verdict.not_checked).items():
        yield _command("error", "not checked", f"{', '.join(rules)}: {why}")


def _finding(card: Card, level: Level, report: Report, base: str) -> str:
    finding, site = card.lead, card.lead.site
    file = in_repository(site.file, base) if site else None
    impact = describe_impact(finding, report.traces[finding.trace])
    facts = " · ".join(filter(None, [impact.words, describe_occurrences(finding, report.traces)]))
    if others := name_other_phases(card):
        facts += f"; {others}"
    if on := count_traces(card, report):
        facts += f"; {on}"
    message, *more = describe_finding(finding)
    lines = [f"{message} ({facts})", *more, f"Fix: {describe_fixes(finding, report.traces[finding.trace])}"]
    place = {}
    if site is None or file is None or site.line is None:
        lines.insert(0, f"{format_place(finding, report.traces[finding.trace])}:")
    else:
        place = {"line": site.line, "col": site.column, "endColumn": site.end_column}
    title = ", ".join(f"{rule} {name}" for rule, name in card.tags)
    return _command(level, title, *lines, file=file, **place)


def _at(level: Level, spot: str, title: str, text: str, base: str) -> str:
    """An annotation at ``pyproject.toml:12``, where that is a file of the repository."""
    file, line = re.fullmatch(r"(.*?)(?::(\d+))?", spot, re.DOTALL).groups()  # type: ignore[union-attr]
    path = in_repository(file, base)
    if path is None:
        return _command(level, title, f"{spot}: {text}")
    return _command(level, title, text, file=path, line=line)


def _command(level: Level, title: str, *lines: str, file: str | None = None, **place: int | str | None) -> str:
    """A command, which is one line. The ``lines`` of its message are each one name or sentence."""
    known = {"file": file, **place, "title": title}
    properties = ",".join(
        f"{name}={command_property(terminal(str(value)))}" for name, value in known.items() if value is not None
    )
    return f"::{level} {properties}::{command(chr(10).join(map(terminal, lines)))}"
