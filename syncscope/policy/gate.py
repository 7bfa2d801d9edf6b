"""Check a report against a policy."""

from __future__ import annotations

import msgspec

from syncscope.policy.budgets import COUNTED, check_budgets, is_wait, limited_rules
from syncscope.policy.extent import describe_missing
from syncscope.policy.partial import COUNTS, rules_with_unseen_parts
from syncscope.policy.phases import has_judged_phase, is_judged, judged_phases
from syncscope.policy.policy import Policy
from syncscope.schema.catalogue import rules_by_code
from syncscope.schema.findings import COMPILED, Finding
from syncscope.schema.report import NotChecked, Report
from syncscope.schema.verdict import Budget, Verdict


def check_gate(report: Report, policy: Policy) -> Verdict:
    """Check a report, to which the policy was applied, against the policy's gate and budgets.

    The gate counts occurrences inside steps and ignores severity and time, so that the verdict is the same on every
    machine. In a trace without steps every occurrence counts. Where the run was counted, it is judged by the steps of
    training, or of the phases that the policy names.
    """
    unexpected = unexpected_findings(report, policy)
    budgets = check_budgets(report, policy, unexpected)
    counts = [budget for budget in budgets if budget.name == COUNTED]
    # Waits under a budget pass or fail together.
    passing = bool(counts) and all(budget.outcome == "kept" for budget in counts)
    partial = () if policy.allow_partial else rules_with_unseen_parts(report, policy)
    if not policy.allow_partial:
        budgets = tuple(_doubt_if_partial(budget, report) for budget in budgets)
    return Verdict(
        gate=_gated_rules(report, policy),
        unexpected=tuple(finding for finding in unexpected if not (passing and is_wait(finding))),
        within_budget=tuple(finding for finding in unexpected if passing and is_wait(finding)),
        stale=report.stale,
        budgets=budgets,
        not_checked=_once((*_blind_rules(report, policy), *partial)),
        unread=report.unread,
        allow_partial=policy.allow_partial,
    )


def _gated_rules(report: Report, policy: Policy) -> tuple[str, ...]:
    """Codes of the gated rules, without those about the count of a run where none was counted."""
    rules = rules_by_code()
    counted = any("counts" in info.has for info in report.traces)
    return tuple(code for code in policy.gated if counted or rules[code].needs != COUNTS)


def comparable_findings(report: Report, policy: Policy) -> tuple[Finding, ...]:
    """What a baseline holds: findings that fail by themselves, and those that a limit of the run counts."""
    failing, judged = set(unexpected_findings(report, policy)), judged_phases(report, policy)
    limited = limited_rules(policy.budgets)
    return tuple(
        finding
        for finding in report.findings
        if finding in failing
        or (finding.rule in limited and finding.status == "unexpected" and is_judged(finding, judged))
    )


def unexpected_findings(report: Report, policy: Policy) -> tuple[Finding, ...]:
    """Findings of gated rules, inside the steps of the phases that are judged, that no expectation covers."""
    judged = judged_phases(report, policy)
    return tuple(
        finding
        for finding in report.findings
        if finding.status == "unexpected"
        and policy.gates(finding)
        and is_judged(finding, judged)
        and _inside_steps(finding, report)
    )


def _inside_steps(finding: Finding, report: Report) -> bool:
    if finding.site_source in ("count", COMPILED):
        return finding.severity != "note"  # it may not wait at all, or waits or compiles in the first steps alone
    if finding.run_per_step is not None:
        return finding.run_per_step > 0
    if report.traces[finding.trace].steps.count:
        return bool(finding.per_step)
    return finding.count > 0


def unchecked_rules(report: Report, policy: Policy) -> tuple[NotChecked, ...]:
    """Gated rules that could not be checked, or not on all there was to see, whether or not the policy allows that."""
    return _once((*_blind_rules(report, policy), *rules_with_unseen_parts(report, policy)))


def _once(entries: tuple[NotChecked, ...]) -> tuple[NotChecked, ...]:
    """The first entry of each rule and trace."""
    first = {(entry.rule, entry.trace): entry for entry in reversed(entries)}
    return tuple(entry for entry in entries if first[entry.rule, entry.trace] is entry)


def _doubt_if_partial(budget: Budget, report: Report) -> Budget:
    """The budget; one that is kept is not checked where part of the trace was lost."""
    lost = report.traces[budget.trace].lost if report.traces else ()
    if budget.outcome != "kept" or not lost:
        return budget
    return msgspec.structs.replace(budget, outcome="not checked", message=f"{lost[0]}; {budget.message}")


def _blind_rules(report: Report, policy: Policy) -> tuple[NotChecked, ...]:
    """Gated rules that could not be checked on a trace of a phase that is judged; all gated rules for a trace without
    runtime calls, and where the recordings show less than the policy demands."""
    rules, gated, judged = rules_by_code(), _gated_rules(report, policy), judged_phases(report, policy)
    if missing := describe_missing(report, policy):
        return tuple(NotChecked(rule=rule, why=missing[0]) for rule in gated)
    traces = {index: info for index, info in enumerate(report.traces) if has_judged_phase(info, judged[index])}
    listed = tuple(
        entry for entry in report.not_checked if entry.rule in gated and not entry.partial and entry.trace in traces
    )
    without_calls = (
        NotChecked(rule=rule, why="the trace holds no runtime calls", trace=index, rank=info.rank)
        for index, info in traces.items()
        if "runtime" not in info.has
        for rule in gated
        if not any(entry.rule == rule and entry.trace == index for entry in listed)
        if not (info.only_counted and rules[rule].counted)
    )
    return (*listed, *without_calls)
