"""The last steps to a report: what a policy says of it, and which rules it is on.

Importing this loads neither numpy nor the rules, so that what was judged before is shown at once.
"""

from __future__ import annotations

import msgspec

from syncscope import policy as policies
from syncscope.report.forms import Report
from syncscope.schema.catalogue import read_catalogue


def finished(report: Report, codes: frozenset[str], policy: policies.Policy | None) -> Report:
    """The merged report by a policy, on the rules with these codes."""
    report = msgspec.structs.replace(report, rules=tuple(sorted(rule.code for rule in read_catalogue())))
    return only(report if policy is None else policies.apply(report, policy), codes)


def only(report: Report, codes: frozenset[str]) -> Report:
    """The report on the rules with these codes. Done last, so that no expectation turns stale by being left out."""
    if not codes.issuperset(rule.code for rule in read_catalogue()):
        from syncscope.rules import RUN_RULES  # loads numpy and the rules

        for rule in RUN_RULES:
            if rule.code not in codes:
                report = rule.leave_out(report)
    return msgspec.structs.replace(
        report,
        rules=tuple(code for code in report.rules if code in codes) if report.rules is not None else None,
        findings=tuple(finding for finding in report.findings if finding.rule in codes),
        not_checked=tuple(entry for entry in report.not_checked if entry.rule in codes),
        stale=tuple(entry for entry in report.stale if any(code.startswith(entry.rule) for code in codes)),
    )
