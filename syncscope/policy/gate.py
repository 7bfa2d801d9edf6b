"""Whether a report may pass."""

from __future__ import annotations

from syncscope.findings import Finding, NotChecked, Report, Verdict
from syncscope.policy.config import Policy


def verdict(report: Report, policy: Policy) -> Verdict:
    """Hold a report, to which the policy was applied, to the policy's gate.

    Judged by count inside steps, never by severity or time, so that it is the same on every machine. In a trace
    without steps every occurrence counts.
    """
    return Verdict(
        gate=policy.gate,
        unexpected=tuple(
            finding
            for finding in report.findings
            if finding.rule in policy.gate and finding.status == "unexpected" and _inside_steps(finding, report)
        ),
        stale=report.stale,
        not_checked=_unseen(report, policy),
    )


def _inside_steps(finding: Finding, report: Report) -> bool:
    if report.traces[finding.trace].steps.count:
        return bool(finding.per_step)
    return finding.count > 0


def _unseen(report: Report, policy: Policy) -> tuple[NotChecked, ...]:
    """Gated rules that could not be checked, and every gated rule on a trace in which nothing could be seen."""
    listed = tuple(entry for entry in report.not_checked if entry.rule in policy.gate and not entry.partial)
    blind = (
        NotChecked(rule=rule, why="the trace holds no runtime calls", trace=index, rank=info.rank)
        for index, info in enumerate(report.traces)
        if "runtime" not in info.has
        for rule in policy.gate
        if not any(entry.rule == rule and entry.trace == index for entry in listed)
    )
    return (*listed, *blind)
