"""Mark the findings that a project expects, and list the expectations that match nothing."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from syncscope.policy.comments import find_comments
from syncscope.policy.partial import is_partial
from syncscope.policy.policy import Expectation, Policy
from syncscope.schema.findings import Finding
from syncscope.schema.order import ordered
from syncscope.schema.report import Report, Stale


def apply(report: Report, policy: Policy) -> Report:
    """Mark the findings that the policy or the program's comments expect, and list stale expectations.

    A finding takes its reason from the first expectation that covers it and whose limit it keeps. A finding that is
    expected in the recording keeps its own reason. An expectation that matches nothing is stale, unless its rule could
    not be checked, the report has not seen all there was, or its rule cannot be told of a wait that was counted there.
    Raises ``ConfigError`` for a comment that cannot be used.
    """
    expectations = (*policy.expect, *find_comments(report, policy.folders))
    matched: set[Expectation] = set()
    findings: list[Finding] = []
    for finding in report.findings:
        covering = [entry for entry in expectations if entry.covers(finding)]
        matched.update(covering, (entry for entry in expectations if entry.may_be_about(finding)))
        findings.append(_mark(finding, covering) if finding.status == "unexpected" else finding)
    partial = is_partial(report)
    unchecked = {entry.rule for entry in report.not_checked if not entry.partial}
    stale = tuple(
        Stale(rule=entry.rule, where=entry.where, reason=entry.reason)
        for entry in expectations
        if entry not in matched and not entry.codes & unchecked and not partial
    )
    return msgspec.structs.replace(report, findings=ordered(findings, report.traces), stale=stale)


def _mark(finding: Finding, covering: Sequence[Expectation]) -> Finding:
    excesses = [entry.excess(finding) for entry in covering]
    for entry, excess in zip(covering, excesses, strict=True):
        if excess is None:
            return msgspec.structs.replace(
                finding, status="expected", reason=entry.reason, exceeds=None, expected_by="project"
            )
    return msgspec.structs.replace(finding, exceeds=next(iter(excesses), None))
