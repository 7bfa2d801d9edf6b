"""Several reports, one for each trace, become one."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from syncscope.ranks.missing import find_missing_ranks
from syncscope.rules import RUN_RULES
from syncscope.schema.findings import Finding
from syncscope.schema.order import ordered
from syncscope.schema.report import NotChecked, Report, Stale, TraceInfo


def merge(reports: Iterable[Report]) -> Report:
    """Join reports of different traces: a pure function, the same in whatever grouping they are joined.

    Findings keep their rank and point at their trace in the joined list. Savings of several traces do not add up,
    so a joined report has none. An expectation is stale only where every report says so, and none is where a trace
    could not be read. A report whose only trace could not be read is joined like any other.

    Raises ``ValueError`` when there is nothing to join.
    """
    parts = list(reports)
    if not parts:
        raise ValueError("no reports to merge")
    findings: list[Finding] = []
    not_checked: list[NotChecked] = []
    offset, read = 0, [part for part in parts if part.traces]
    savings = read[0] if len(read) == 1 else None
    for part in parts:
        findings += [msgspec.structs.replace(finding, trace=finding.trace + offset) for finding in part.findings]
        not_checked += [msgspec.structs.replace(entry, trace=entry.trace + offset) for entry in part.not_checked]
        offset += len(part.traces)
    traces = _count_processes(info for part in parts for info in part.traces)
    # Rules of a run compare all of its ranks, so their findings from fewer ranks are dropped.
    of_run = {rule.code: rule for rule in RUN_RULES}
    earlier = {(one.rule, one.trace, one.fingerprint): one for one in findings if one.rule in of_run}
    findings = [finding for finding in findings if finding.rule not in of_run]
    not_checked = [
        entry
        for entry in not_checked
        if entry.rule not in of_run or not of_run[entry.rule].can_compare(traces[entry.trace])
    ]
    compared = [rule.compare(traces, findings) for rule in RUN_RULES]
    for rule, one in zip(RUN_RULES, compared, strict=True):
        findings = rule.explain(findings, one)
    for finding in (finding for one in compared for finding in one.findings):
        known = earlier.get((finding.rule, finding.trace, finding.fingerprint), finding)
        findings.append(msgspec.structs.replace(finding, status=known.status, reason=known.reason))
    return Report(
        tool=parts[0].tool,
        traces=traces,
        findings=ordered(findings, traces),
        rules=_rules_of_all(parts),
        saving_all_ms_per_step=savings.saving_all_ms_per_step if savings else None,
        saving_all_low_ms_per_step=savings.saving_all_low_ms_per_step if savings else None,
        saving_all_high_ms_per_step=savings.saving_all_high_ms_per_step if savings else None,
        likely_saving_all_ms_per_step=savings.likely_saving_all_ms_per_step if savings else None,
        likely_saving_all_high_ms_per_step=savings.likely_saving_all_high_ms_per_step if savings else None,
        saving_all_below_drift=savings.saving_all_below_drift if savings else False,
        not_checked=(*not_checked, *(entry for one in compared for entry in one.not_checked)),
        stale=_stale_everywhere(parts),
        between_ranks=next((one.between_ranks for one in compared if one.between_ranks is not None), None),
        unread=tuple(entry for part in parts for entry in part.unread),
        missing_ranks=find_missing_ranks(traces),
    )


def _count_processes(traces: Iterable[TraceInfo]) -> tuple[TraceInfo, ...]:
    """The traces, each with how many processes of its run left one of them."""
    infos = tuple(traces)
    processes: dict[str, set[tuple[int | None, int | None]]] = {}
    for info in infos:
        if info.run is not None:
            processes.setdefault(info.run.id, set()).add((info.rank, info.run.pid))
    return tuple(
        info
        if info.run is None
        else msgspec.structs.replace(info, run=msgspec.structs.replace(info.run, processes=len(processes[info.run.id])))
        for info in infos
    )


def _rules_of_all(parts: list[Report]) -> tuple[str, ...] | None:
    known = [frozenset(part.rules) for part in parts if part.rules is not None]
    return tuple(sorted(frozenset.intersection(*known))) if len(known) == len(parts) else None


def _stale_everywhere(parts: list[Report]) -> tuple[Stale, ...]:
    return tuple(entry for entry in parts[0].stale if all(entry in part.stale for part in parts))
