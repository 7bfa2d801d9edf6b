"""The processes of a report whose whole run was looked at, and how they differ.

Every trace of a process holds its whole run, so a report of several ranks and phases holds it several times over.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from syncscope.schema.findings import Finding
from syncscope.schema.report import TraceInfo
from syncscope.schema.run import Phase, Run

SELDOM = 0.05
"""Occurrences a step below which what no window recorded says little of a step."""


class Process(msgspec.Struct, frozen=True):
    """One process of a run."""

    run: Run
    traces: tuple[int, ...]
    """Its traces, numbered as in the report; the one that speaks for the phases without a trace comes first."""


def group_processes(traces: Sequence[TraceInfo]) -> list[Process]:
    """The processes in the order of their first traces. Traces without a run belong to none."""
    found: dict[object, list[int]] = {}
    for number, info in enumerate(traces):
        if info.run is not None:
            found.setdefault(_key(info, info.run), []).append(number)
    processes = []
    for numbers in found.values():
        ordered = sorted(numbers, key=lambda number: not _main(traces[number]))
        run = traces[ordered[0]].run
        if run is not None:
            processes.append(Process(run, tuple(ordered)))
    return processes


def _key(info: TraceInfo, run: Run) -> object:
    """What the traces of one process have in common: not all they say of the run, since one that was killed wrote each
    at another moment. Processes of which neither rank nor number is known are told apart by what they did."""
    if info.rank is not None:
        return run.id, info.rank
    return (run.id, None, run.pid) if run.pid is not None else msgspec.structs.replace(run, main=True)


def _main(info: TraceInfo) -> bool:
    return info.run is not None and info.run.main


def is_counted_only(info: TraceInfo) -> bool:
    """Whether a trace holds no recorded step and no call, only what was counted over the run."""
    return info.run is not None and not info.steps.count and "runtime" not in info.has and info.overlap is None


def holds_collectives_alone(info: TraceInfo) -> bool:
    """Whether nothing but collectives is in a trace: of a file without calls only their time is told."""
    return info.run is None and "runtime" not in info.has and info.overlap is None


def find_phase(run: Run | None, name: str | None) -> Phase | None:
    """The phase of this name."""
    return next((phase for phase in run.phases if phase.name == name), None) if run is not None else None


def main_phase(run: Run) -> Phase | None:
    """The phase that a reader takes for granted: training, without training the longest that has steps."""
    training = [phase for phase in run.phases if phase.kind == "train"]
    stepping = [phase for phase in run.phases if phase.steps and phase.kind != "start"]
    return max(training or stepping, key=lambda phase: phase.share, default=None)


def is_main(finding: Finding, traces: Sequence[TraceInfo]) -> bool:
    """Whether a finding is in the phase that a reader takes for granted."""
    run = traces[finding.trace].run if finding.trace < len(traces) else None
    main = main_phase(run) if run is not None else None
    return main is not None and finding.phase == main.name


def count_waits(run: Run) -> int:
    """The waits that were counted in the whole run; an estimate where only some steps were counted."""
    phases = [phase for phase in run.phases if phase.waits_per_step is not None]
    return round(sum((phase.waits_per_step or 0.0) * (phase.steps or phase.times) for phase in phases))


def phase_of(finding: Finding, traces: Sequence[TraceInfo]) -> Phase | None:
    """The phase that a finding is in; ``None`` where its run was not looked at."""
    return find_phase(traces[finding.trace].run, finding.phase) if finding.trace < len(traces) else None


def is_outside_steps(finding: Finding, traces: Sequence[TraceInfo]) -> bool:
    """Whether a finding was only counted, in a phase without steps."""
    phase = phase_of(finding, traces)
    return finding.site_source == "count" and phase is not None and not phase.steps


def is_seldom(finding: Finding, traces: Sequence[TraceInfo]) -> bool:
    """Whether a finding was only counted, beside steps that were recorded, and outside of steps or in few of them, or
    in a phase of which no step was counted."""
    if finding.site_source != "count" or is_counted_only(traces[finding.trace]):
        return False
    often, phase = finding.run_per_step, phase_of(finding, traces)
    uncounted = phase is not None and phase.steps > 0 and not phase.counted_steps
    having = finding.run_steps_with
    in_few = phase is not None and having is not None and having <= SELDOM * phase.counted_steps
    return is_outside_steps(finding, traces) or uncounted or in_few or (often is not None and often < SELDOM)
