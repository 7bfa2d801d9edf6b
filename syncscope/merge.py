"""Several reports, one for each trace, become one."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from syncscope.findings import SEVERITIES, Finding, NotChecked, Report, Stale, Status

STATUSES: tuple[Status, ...] = ("unexpected", "baseline", "expected")


def merge(reports: Iterable[Report]) -> Report:
    """Join reports of different traces: a pure function, the same in whatever grouping they are joined.

    Findings keep their rank and point at their trace in the joined list. Savings of several traces do not add up,
    so a joined report has none. An expectation is stale only where every report says so.

    Raises ``ValueError`` when there is nothing to join.
    """
    parts = list(reports)
    if not parts:
        raise ValueError("no reports to merge")
    findings: list[Finding] = []
    not_checked: list[NotChecked] = []
    offset, alone = 0, len(parts) == 1
    for part in parts:
        findings += [msgspec.structs.replace(finding, trace=finding.trace + offset) for finding in part.findings]
        not_checked += [msgspec.structs.replace(entry, trace=entry.trace + offset) for entry in part.not_checked]
        offset += len(part.traces)
    return Report(
        tool=parts[0].tool,
        traces=tuple(info for part in parts for info in part.traces),
        findings=ordered(findings),
        saving_all_ms_per_step=parts[0].saving_all_ms_per_step if alone else None,
        saving_all_low_ms_per_step=parts[0].saving_all_low_ms_per_step if alone else None,
        saving_all_high_ms_per_step=parts[0].saving_all_high_ms_per_step if alone else None,
        not_checked=tuple(not_checked),
        stale=_stale_everywhere(parts),
    )


def ordered(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    """Unexpected first, notes last; then by what fixing is worth, where that is unknown by severity and what it
    blocks."""
    return tuple(sorted(findings, key=_place))


def _place(finding: Finding) -> tuple[object, ...]:
    blocked = (finding.stall_ms_per_step, finding.exposed_ms_per_step, finding.stall_ms)
    saving = finding.saving_ms_per_step if finding.saving_ms_per_step is not None else finding.saving_high_ms_per_step
    return (
        STATUSES.index(finding.status),
        finding.severity == "note",
        saving is None,
        -(saving or 0.0),
        SEVERITIES.index(finding.severity),
        -next((ms for ms in blocked if ms is not None), 0.0),
        finding.trace,
        finding.rule,
        finding.site.file if finding.site else "",
        finding.site.line or 0 if finding.site else 0,
    )


def _stale_everywhere(parts: list[Report]) -> tuple[Stale, ...]:
    return tuple(entry for entry in parts[0].stale if all(entry in part.stale for part in parts))
