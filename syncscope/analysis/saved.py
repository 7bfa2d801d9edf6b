"""Judge saved reports by the policy of today, as if their traces had been read again."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import msgspec

from syncscope import policy as policies
from syncscope.schema.findings import Finding
from syncscope.schema.report import NotChecked, Report

OLD = "the report does not say for which rules its traces were read: analyze them again"
LEFT_OUT = "the report was made without this rule"


def judge_again(reports: Iterable[Report], policy: policies.Policy) -> Report:
    """The reports as one, with the expectations of ``policy`` in place of those by which they were judged before.

    What the program expects of itself stays expected. A gated rule that one of the reports left out is not checked.
    Raises ``ConfigError`` as ``policy.apply`` does.
    """
    parts = list(reports)
    unjudged = [_unjudged(part, policy) for part in parts]
    return policies.apply(unjudged[0] if len(parts) == 1 else _merged(unjudged), policy)


def _merged(reports: Sequence[Report]) -> Report:
    from syncscope.analysis.merge import merge  # which loads the rules, and numpy

    return merge(reports)


def _unjudged(report: Report, policy: policies.Policy) -> Report:
    missing = tuple(_rules_left_out(report, policy))
    return msgspec.structs.replace(
        report,
        findings=tuple(_as_found(finding) for finding in report.findings),
        not_checked=(*report.not_checked, *missing),
        stale=(),
    )


def _as_found(finding: Finding) -> Finding:
    """The finding before any policy or baseline marked it."""
    if finding.status == "expected" and finding.expected_by is msgspec.UNSET:
        return finding
    return msgspec.structs.replace(finding, status="unexpected", reason=None, exceeds=None, expected_by=msgspec.UNSET)


def _rules_left_out(report: Report, policy: policies.Policy) -> Iterator[NotChecked]:
    for rule in policy.gated:
        if report.rules is None or rule not in report.rules:
            why = OLD if report.rules is None else LEFT_OUT
            for number, info in enumerate(report.traces):
                yield NotChecked(rule=rule, why=why, trace=number, rank=info.rank)
