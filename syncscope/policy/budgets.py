"""Check whether a report keeps its budgets, which are limits a step.

The budget of waits is a count, which is the same on every machine. A budget in time is checked over the recorded steps.
The figure of a trace is the median of its steps. The budget is exceeded only when the lower quartile is over it too,
that is, when about three of four steps are. With fewer than ``FEWEST_STEPS`` steps it cannot be checked.

What ``torch.compile`` does is limited over the run: it happens in few steps.

Budgets hold in the phases that are judged. A scope has limits of its own in one phase, or for one process group.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import msgspec

from syncscope.compare.fingerprints import format_count, most_frequent
from syncscope.policy.phases import is_judged, judged_phases
from syncscope.policy.policy import Policy
from syncscope.policy.settings import Budgets, Scope
from syncscope.policy.timed_budgets import NO_CALLS, NO_STEPS, TIMED, holds_most, unchecked
from syncscope.schema.catalogue import rules_by_code
from syncscope.schema.findings import Finding
from syncscope.schema.report import Report, TraceInfo
from syncscope.schema.verdict import Budget

COUNTED = "max_unexpected_syncs_per_step"

OF_COMPILING = {
    "max_recompiles": ("recompile in warm steps", "recompiles in warm steps"),
    "max_graph_breaks": ("line ends a compiled graph", "lines end a compiled graph"),
}
"""Limits of the run, with what they count: one, and several."""
MOST_LINES = 3
"""Lines that the message of an exceeded limit names."""
NOT_COMPILED = "the trace does not say what torch.compile did (syncscope profile records it)"


def check_budgets(report: Report, policy: Policy, unexpected: Sequence[Finding]) -> tuple[Budget, ...]:
    """Check every budget that is set, on every trace that it is about. ``unexpected`` are the findings that fail
    without budgets. A budget that no trace is about is not checked."""
    return (
        *_counted(report, policy.budgets, unexpected),
        *_compiled(report, policy),
        *_timed(report, policy),
    )


def limited_rules(budgets: Budgets) -> tuple[str, ...]:
    """Codes of the rules whose findings a limit counts."""
    limits = [name for name in OF_COMPILING if getattr(budgets, name) is not None]
    return tuple(code for code, rule in rules_by_code().items() if rule.limited_by in limits)


def is_wait(finding: Finding) -> bool:
    """Whether the finding counts against the budget of waits."""
    rule = rules_by_code().get(finding.rule)
    return rule is not None and rule.counts_as_wait


def _counted(report: Report, budgets: Budgets, unexpected: Sequence[Finding]) -> Iterator[Budget]:
    allowed = budgets.max_unexpected_syncs_per_step
    if allowed is None:
        return
    for index, info in enumerate(report.traces):
        waits = [finding for finding in unexpected if finding.trace == index and is_wait(finding)]
        yield msgspec.structs.replace(_check_count(allowed, waits, info), trace=index, rank=info.rank)


def _check_count(allowed: float, waits: Sequence[Finding], info: TraceInfo) -> Budget:
    frequency, seen = most_frequent(waits), "runtime" in info.has or info.only_counted
    if frequency is None or not seen:
        return unchecked(COUNTED, allowed, NO_STEPS if seen else NO_CALLS)
    count = frequency.per_step
    noun = "wait" if count == 1 else "waits"
    return Budget(
        name=COUNTED,
        allowed=allowed,
        found=count,
        outcome="exceeded" if frequency.low > allowed else "kept",
        message=f"{format_count(count)} unexpected {noun} a step, {format_count(allowed)} allowed",
    )


def _compiled(report: Report, policy: Policy) -> Iterator[Budget]:
    """The limits of what ``torch.compile`` does, on every trace. They hold whether or not the rules are gated."""
    judged = judged_phases(report, policy)
    for name, words in OF_COMPILING.items():
        allowed: int | None = getattr(policy.budgets, name)
        if allowed is None:
            continue
        for index, info in enumerate(report.traces):
            mine = [
                finding
                for finding in report.findings
                if finding.trace == index and finding.status == "unexpected" and is_judged(finding, judged)
            ]
            budget = _check_compiled(name, words, allowed, mine) if "compiled" in info.has else None
            found = budget or unchecked(name, allowed, NOT_COMPILED)
            yield msgspec.structs.replace(found, trace=index, rank=info.rank)


def _check_compiled(name: str, words: tuple[str, str], allowed: int, findings: Sequence[Finding]) -> Budget:
    rules = rules_by_code()
    mine = [one for one in findings if one.rule in rules and rules[one.rule].limited_by == name]
    found = sum(1 if one.occurrences is None else one.occurrences for one in mine)
    lines = list(dict.fromkeys(_format_line(one) for one in mine)) if found > allowed else []
    more = [f"and {len(lines) - MOST_LINES:,} more"] if len(lines) > MOST_LINES else []
    at = f": {', '.join([*lines[:MOST_LINES], *more])}" if lines else ""
    return Budget(
        name=name,
        allowed=allowed,
        found=found,
        outcome="exceeded" if found > allowed else "kept",
        message=f"{found:,} {words[found != 1]}, {allowed:,} allowed{at}",
    )


def _format_line(finding: Finding) -> str:
    """``train.py:21 in Net.forward``."""
    site = finding.site
    if site is None:
        return "line unknown"
    return f"{site.file}{'' if site.line is None else f':{site.line}'} in {site.function}"


def _timed(report: Report, policy: Policy) -> Iterator[Budget]:
    judged = judged_phases(report, policy)
    everywhere = [index for index, info in enumerate(report.traces) if _is_of(info, judged[index])]
    for limits in (policy.budgets, *policy.budgets.scopes):
        phase, group = (limits.phase, limits.group) if isinstance(limits, Scope) else (None, None)
        traces = everywhere if phase is None else [i for i, info in enumerate(report.traces) if _shows(info, phase)]
        for timed in TIMED:
            allowed: float | None = getattr(limits, timed.name)
            if allowed is None:
                continue
            asked = [holds_most(report, traces)] if timed.of_run and traces else traces
            checked = [(index, timed.check(allowed, report, index, group)) for index in asked]
            missing = f"no steps of {phase or 'a phase that is judged'} were recorded"
            for index, budget in checked or [(0, unchecked(timed.name, allowed, missing))]:
                rank = report.traces[index].rank if report.traces else None
                yield msgspec.structs.replace(budget, trace=index, rank=rank, phase=phase, group=group)


def _is_of(info: TraceInfo, names: frozenset[str] | None) -> bool:
    """Whether the recorded steps are of a phase with one of the names; where they do not say, they may be."""
    return info.run is None or names is None or info.phase is None or info.phase in names


def _shows(info: TraceInfo, phase: str) -> bool:
    """Whether the recorded steps are of a phase of this kind or name."""
    phases = info.run.phases if info.run else ()
    return info.phase is not None and (
        info.phase == phase or any(one.name == info.phase and one.kind == phase for one in phases)
    )
