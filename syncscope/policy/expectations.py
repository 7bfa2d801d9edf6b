"""Which findings a project expects, and which expectations nothing answers any more."""

from __future__ import annotations

import msgspec

from syncscope.findings import Finding, Report, Stale
from syncscope.merge import ordered
from syncscope.policy.config import Expectation, Policy


def apply(report: Report, policy: Policy) -> Report:
    """Mark what the policy expects, and list its expectations that match nothing as ``stale``.

    The first expectation that covers a finding gives the reason. What the recording already says is expected keeps
    its own. An expectation for a rule that could not be checked is not stale: nobody looked.
    """
    answered: set[Expectation] = set()
    findings: list[Finding] = []
    for finding in report.findings:
        covering = [entry for entry in policy.expect if entry.covers(finding)]
        answered.update(covering)
        if covering and finding.status == "unexpected":
            finding = msgspec.structs.replace(finding, status="expected", reason=covering[0].reason)
        findings.append(finding)
    unseen = {entry.rule for entry in report.not_checked if not entry.partial}
    stale = tuple(
        Stale(rule=entry.rule, where=entry.where, reason=entry.reason)
        for entry in policy.expect
        if entry not in answered and not entry.codes & unseen
    )
    return msgspec.structs.replace(report, findings=ordered(findings), stale=stale)
