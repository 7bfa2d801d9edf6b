"""Choose which of many traces to show."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TypeVar

import msgspec

from syncscope.report.escape import terminal
from syncscope.report.finding_phrases import group_alike
from syncscope.schema.catalogue import rules_by_code
from syncscope.schema.findings import Finding
from syncscope.schema.ranks import RankBetween, WaitsFor
from syncscope.schema.report import NotChecked, Report


def notable(report: Report, most: int) -> list[int]:
    """Choose at most ``most`` traces, and return them in the report's order. The first trace is chosen first; then
    those that hold others up; then the heaviest of each finding; then those that wait longest or have the longest
    steps."""
    if len(report.traces) <= most:
        return list(range(len(report.traces)))
    chosen: dict[int, None] = {}
    for trace in _by_interest(report):
        chosen.setdefault(trace)
        if len(chosen) == most:
            break
    return sorted(chosen)


def reduced(report: Report, most: int) -> Report:
    """The report with no more than its ``most`` notable traces and their findings."""
    return _with_traces(report, notable(report, most))


def of_phase(report: Report, name: str) -> Report:
    """The report with no other findings than those of a phase, and the traces that have one or are of it.

    ``name`` is that of a phase, or a kind of phases. Raises ``ValueError`` for one that no trace has.
    """
    names = {name} | {
        phase.name for info in report.traces if info.run for phase in info.run.phases if phase.kind == name
    }
    known = {phase.name: None for info in report.traces if info.run for phase in info.run.phases}
    known |= {info.phase: None for info in report.traces if info.phase}
    if not names & set(known):
        listed = ", ".join(map(terminal, known))
        raise ValueError(f"no phase {terminal(name)}" + (f": the phases are {listed}" if known else " was recorded"))
    found = tuple(finding for finding in report.findings if finding.phase in names)
    having = {finding.trace for finding in found}
    kept = [number for number, info in enumerate(report.traces) if info.phase in names or number in having]
    speaking = [number for number, info in enumerate(report.traces) if info.run is not None and info.run.main]
    return _with_traces(msgspec.structs.replace(report, findings=found), kept or speaking)


def _with_traces(report: Report, traces: Sequence[int]) -> Report:
    """The report with no more than these traces, in their order, and their findings."""
    kept = {trace: number for number, trace in enumerate(traces)}
    if len(kept) == len(report.traces):
        return report
    between = report.between_ranks
    if between is not None:
        rows = [_moved(row, kept) for row in between.ranks if row.trace in kept]
        rows = [
            msgspec.structs.replace(
                row, waits_for=tuple(_moved(one, kept) for one in row.waits_for if one.trace in kept)
            )
            for row in rows
        ]
        between = msgspec.structs.replace(between, ranks=tuple(rows), reference=kept.get(between.reference, 0))
    return msgspec.structs.replace(
        report,
        traces=tuple(report.traces[trace] for trace in kept),
        findings=tuple(_moved(finding, kept) for finding in report.findings if finding.trace in kept),
        not_checked=tuple(_moved(entry, kept) for entry in report.not_checked if entry.trace in kept),
        between_ranks=between,
    )


_Of = TypeVar("_Of", Finding, NotChecked, RankBetween, WaitsFor)


def _moved(entry: _Of, to: dict[int, int]) -> _Of:
    return msgspec.structs.replace(entry, trace=to[entry.trace])


def _by_interest(report: Report) -> Iterator[int]:
    yield 0
    rules = rules_by_code()
    for finding in report.findings:
        if finding.rule in rules and rules[finding.rule].compares_ranks:
            yield finding.trace
    for group in group_alike(report.findings):
        yield group[0].trace
    if report.between_ranks is not None:
        rows = report.between_ranks.ranks
        yield max(rows, key=lambda row: row.holds_ms_per_step).trace
        yield max(rows, key=lambda row: row.waits_ms_per_step).trace
    yield max(range(len(report.traces)), key=lambda number: report.traces[number].steps.profiled_ms or 0.0)
    yield from range(len(report.traces))
