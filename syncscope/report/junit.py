"""The report as JUnit XML, which every CI can show: a suite for each trace, a case for each rule it is held to.

Fails: a rule with findings that stand against the gate. Errs: a gated rule that could not be checked, a budget that
could not be checked, and a trace that could not be read; not *skipped*, since a CI passes those. Without a verdict all
rules are cases: those with unexpected findings fail, notes aside, and those that could not be checked are skipped.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import TypeVar
from xml.etree.ElementTree import Element, SubElement, indent, tostring

from syncscope.report.escape import log_line, terminal
from syncscope.report.finding_phrases import describe_cost, describe_finding, format_place, group_alike
from syncscope.report.known_causes import describe_fixes
from syncscope.report.numbers import count
from syncscope.report.trace_phrases import label_by_file
from syncscope.report.verdict_phrases import describe_stale
from syncscope.rules import RULES
from syncscope.schema.findings import Finding
from syncscope.schema.report import NotChecked, Report, Stale, TraceInfo
from syncscope.schema.verdict import Budget, Verdict

COUNTED = {"failure": "failures", "error": "errors", "skipped": "skipped"}


def render(report: Report, verdict: Verdict | None = None) -> str:
    """The document, with its XML declaration; UTF-8 when written."""
    root = Element("testsuites", name="syncscope")
    labels = label_by_file(report.traces)
    by_trace = _by_trace(report.findings if verdict is None else verdict.unexpected)
    unseen = _by_trace(report.not_checked if verdict is None else verdict.not_checked)
    budgets = _by_trace(() if verdict is None else verdict.budgets)
    for number, (info, label) in enumerate(zip(report.traces, labels, strict=True)):
        suite = SubElement(root, "testsuite", name=terminal(info.path))
        # Jenkins takes what is before a dot for a package.
        cases = _Cases(suite, f"syncscope.{terminal(label).replace('.', '_')}", report.traces)
        if verdict is None:
            _all_rules(cases, by_trace[number], unseen[number])
        else:
            _gated(cases, verdict.gate, by_trace[number], unseen[number])
        for budget in budgets[number]:
            _budget(cases, budget)
    if report.unread:
        suite = SubElement(root, "testsuite", name="unread")
        unread = _Cases(suite, "syncscope.unread")
        for entry in report.unread:
            allowed = verdict is not None and verdict.allow_partial
            unread.add(entry.path, "skipped" if allowed else "error", f"not read: {entry.why}")
    if report.stale:
        suite = SubElement(root, "testsuite", name="expectations")
        _stale(_Cases(suite, "syncscope.expectations"), report.stale)
    for suite in root:
        _count(suite)
    indent(root)
    return f"<?xml version='1.0' encoding='utf-8'?>\n{tostring(root, encoding='unicode')}\n"


class _Cases:
    """The cases of one suite."""

    def __init__(self, suite: Element, classname: str, traces: Sequence[TraceInfo] = ()) -> None:
        self.traces = traces
        self._suite = suite
        self._classname = classname

    def add(self, name: str, kind: str = "", message: str = "", text: str = "") -> None:
        """A case; with a ``kind`` (``failure``, ``error``, ``skipped``) one that did not pass."""
        case = SubElement(self._suite, "testcase", classname=self._classname, name=terminal(name))
        if kind:
            SubElement(case, kind, message=terminal(message)).text = text or None


_Of = TypeVar("_Of", Finding, NotChecked, Budget)


def _by_trace(entries: Iterable[_Of]) -> defaultdict[int, list[_Of]]:
    grouped: defaultdict[int, list[_Of]] = defaultdict(list)
    for entry in entries:
        grouped[entry.trace].append(entry)
    return grouped


def _gated(cases: _Cases, gate: Iterable[str], against: Sequence[Finding], unseen: Iterable[NotChecked]) -> None:
    blind = {entry.rule: entry for entry in unseen}
    for rule in gate:
        _rule(cases, rule, [finding for finding in against if finding.rule == rule], blind.get(rule), "error")


def _all_rules(cases: _Cases, findings: Sequence[Finding], unseen: Iterable[NotChecked]) -> None:
    blind = {entry.rule: entry for entry in unseen if not entry.partial}
    mine = [finding for finding in findings if finding.status == "unexpected" and finding.severity != "note"]
    for rule in sorted({*(rule.code for rule in RULES), *(finding.rule for finding in mine)}):
        _rule(cases, rule, [finding for finding in mine if finding.rule == rule], blind.get(rule), "skipped")


def _rule(cases: _Cases, rule: str, findings: Sequence[Finding], unseen: NotChecked | None, unseen_is: str) -> None:
    name = next((f"{known.code} {known.name}" for known in RULES if known.code == rule), rule)
    if findings:
        places = ", ".join(dict.fromkeys(map(format_place, findings)))
        found = f"{count(len(group_alike(findings)), 'unexpected finding')}: {places}"
        cases.add(name, "failure", found, _text(findings, cases.traces))
    elif unseen is not None:
        cases.add(name, unseen_is, f"not checked: {unseen.why}")
    else:
        cases.add(name)


def _text(findings: Iterable[Finding], traces: Sequence[TraceInfo]) -> str:
    """A few lines a finding."""
    lines = []
    for finding in findings:
        expression = f"  {finding.site.expression}" if finding.site and finding.site.expression else ""
        lines += [
            f"{format_place(finding, traces[finding.trace])}{expression}",
            describe_cost(finding, traces),
            *describe_finding(finding),
            f"fix: {describe_fixes(finding, traces[finding.trace])}",
            "",
        ]
    return "\n".join(log_line(terminal(line)) for line in lines)


def _budget(cases: _Cases, budget: Budget) -> None:
    kind = {"kept": "", "exceeded": "failure", "not checked": "error"}[budget.outcome]
    cases.add(f"budget {budget.title}", kind, budget.message)


def _stale(cases: _Cases, stale: Iterable[Stale]) -> None:
    for entry in stale:
        cases.add(f"{entry.where} {entry.rule}", "failure", f"{entry.where}: {describe_stale(entry)}")


def _count(suite: Element) -> None:
    """How many cases there are, and how many did not pass."""
    suite.set("tests", str(len(suite)))
    for kind, attribute in COUNTED.items():
        suite.set(attribute, str(sum(case.find(kind) is not None for case in suite)))
