"""Check a report against a policy."""

from __future__ import annotations

from syncscope.policy.budgets import COUNTED, check_budgets, is_wait
from syncscope.policy.policy import Policy
from syncscope.schema.findings import Finding
from syncscope.schema.report import NotChecked, Report
from syncscope.schema.verdict import Verdict


def check_gate(report: Report, policy: Policy) -> Verdict:
    """Check a report, to which the policy was applied, against the policy's gate and budgets.

    The gate counts occurrences inside steps and ignores severity and time, so that the verdict is the same on every
    machine. In a trace without steps every occurrence counts.
    """
    unexpected = unexpected_findings(report, policy)
    budgets = check_budgets(report, policy.budgets, unexpected)
    counts = [budget for budget in budgets if budget.name == COUNTED]
    # Waits under a budget pass or fail together.
    passing = bool(counts) and all(budget.outcome == "kept" for budget in counts)
    return Verdict(
        gate=policy.gated,
        unexpected=tuple(finding for finding in unexpected if not (passing and is_wait(finding))),
        within_budget=tuple(finding for finding in unexpected if passing and is_wait(finding)),
        stale=report.stale,
        budgets=budgets,
        not_checked=unchecked_rules(report, policy),
        unread=report.unread,
    )


def unexpected_findings(report: Report, policy: Policy) -> tuple[Finding, ...]:
    """Findings of gated rules, inside the steps, that no expectation covers."""
    return tuple(
        finding
        for finding in report.findings
        if finding.status == "unexpected" and policy.gates(finding) and _inside_steps(finding, report)
    )


def _inside_steps(finding: Finding, report: Report) -> bool:
    if report.traces[finding.trace].steps.count:
        return bool(finding.per_step)
    return finding.count > 0


def unchecked_rules(report: Report, policy: Policy) -> tuple[NotChecked, ...]:
    """Gated rules that could not be checked; all gated rules for a trace without runtime calls."""
    gated = policy.gated
    listed = tuple(entry for entry in report.not_checked if entry.rule in gated and not entry.partial)
    without_calls = (
        NotChecked(rule=rule, why="the trace holds no runtime calls", trace=index, rank=info.rank)
        for index, info in enumerate(report.traces)
        if "runtime" not in info.has
        for rule in gated
        if not any(entry.rule == rule and entry.trace == index for entry in listed)
    )
    return (*listed, *without_calls)
