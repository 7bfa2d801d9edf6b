"""Which findings a project expects, and which expectations nothing answers any more."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from syncscope.policy.inline import comments
from syncscope.policy.policy import Expectation, Policy
from syncscope.schema.findings import Finding, ordered
from syncscope.schema.report import Report, Stale


def apply(report: Report, policy: Policy) -> Report:
    """Mark what the policy and the program's comments expect, and list those expectations that match nothing as
    ``stale``.

    The first expectation that covers a finding, and whose limit it keeps, gives the reason. What the recording already
    says is expected keeps its own. An expectation for a rule that could not be checked is not stale: nobody looked; and
    none is where a trace could not be read.
    Raises ``ConfigError`` for a comment that cannot be used.
    """
    expectations = (*policy.expect, *comments(report, policy.folders))
    answered: set[Expectation] = set()
    findings: list[Finding] = []
    for finding in report.findings:
        covering = [entry for entry in expectations if entry.covers(finding)]
        answered.update(covering)
        findings.append(_judged(finding, covering) if finding.status == "unexpected" else finding)
    unseen = {entry.rule for entry in report.not_checked if not entry.partial}
    stale = tuple(
        Stale(rule=entry.rule, where=entry.where, reason=entry.reason)
        for entry in expectations
        if entry not in answered and not entry.codes & unseen and not report.unread
    )
    return msgspec.structs.replace(report, findings=ordered(findings), stale=stale)


def _judged(finding: Finding, covering: Sequence[Expectation]) -> Finding:
    exceeded = [entry.exceeded(finding) for entry in covering]
    for entry, beyond in zip(covering, exceeded, strict=True):
        if beyond is None:
            return msgspec.structs.replace(finding, status="expected", reason=entry.reason, exceeds=None)
    return msgspec.structs.replace(finding, exceeds=next(iter(exceeded), None))
