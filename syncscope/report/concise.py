"""One line a finding, as linters print them: ``train.py:21:20: SYN102 loss.item() reads … [saves 2.6 %]``.

Editors and problem matchers find the place in it. Findings at one place that have one cause are one line.
"""

from __future__ import annotations

from syncscope.report.cards import Card, choose_findings, make_cards
from syncscope.report.escape import log_line, terminal
from syncscope.report.impact import describe_impact
from syncscope.report.verdict_phrases import summarize_report, summarize_verdict
from syncscope.schema.report import Report
from syncscope.schema.verdict import Verdict


def render(report: Report, verdict: Verdict | None = None, *, top: int | None = None) -> str:
    """A line for each finding that fails the gate (without a verdict, for each unexpected one), what was not seen, and
    a summary."""
    findings = choose_findings(report) if verdict is None else verdict.unexpected
    lines = [_line(card, report) for card in make_cards(findings)[:top]]
    lines += [f"{terminal(entry.path)}: not read: {terminal(entry.why)}" for entry in report.unread]
    lines += [f"{terminal(entry.where)}: stale expectation of {terminal(entry.rule)}" for entry in report.stale]
    if verdict is not None:
        lines += [f"budget {one.outcome}: {one.name}: {terminal(one.message)}" for one in verdict.exceeded]
        lines += [f"not checked: {terminal(one.rule)}: {terminal(one.why)}" for one in verdict.not_checked]
    end = summarize_report(report) if verdict is None else summarize_verdict(verdict, report)
    return "\n".join(map(log_line, [*lines, end])) + "\n"


def _line(card: Card, report: Report) -> str:
    where, words, impact = describe_shortly(card, report)
    return f"{terminal(where)}: {terminal(card.lead.rule)} {terminal(words)} [{terminal(impact)}]"


def describe_shortly(card: Card, report: Report) -> tuple[str, str, str]:
    """Place, words and impact of a card, each in few words; not escaped. What has no line is at its trace."""
    finding = card.lead
    site, info = finding.site, report.traces[finding.trace]
    place = [info.path] if site is None else [site.file, site.line, site.column if site.line else None]
    where = ":".join(str(part) for part in place if part is not None)
    also = f" (also {', '.join(rule for rule, _ in card.tags[1:])})" if len(card.tags) > 1 else ""
    return where, _first_clause(finding.message) + also, describe_impact(finding, info).words


def _first_clause(message: str) -> str:
    """What happens, without what follows a colon or a semicolon and a space."""
    for sign in (": ", "; "):
        message = message.split(sign)[0]
    return " ".join(message.split())
