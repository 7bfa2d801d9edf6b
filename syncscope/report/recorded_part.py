"""Which part of the program a report is about, and what share of the run that is.

Names are as they stand in the report: not escaped.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from syncscope.report.first_steps import find_first_steps
from syncscope.report.numbers import count, seconds
from syncscope.report.run_phrases import describe_recorded, describe_share
from syncscope.report.runs import find_phase, group_processes, is_counted_only
from syncscope.report.trace_phrases import label_processes
from syncscope.schema.counting import PhaseKind
from syncscope.schema.report import Report, TraceInfo
from syncscope.schema.run import Phase, Run

UNKNOWN = "share of the program is not known"
MOST_PHASES = 3
"""Recorded phases that are named."""
MUCH = 0.25
"""Share of the run from which a phase that was not recorded is named."""
WHERE: dict[PhaseKind, str] = {
    "start": "before the first step",
    "epoch end": "after the end of an epoch, outside of the steps",
    "checkpoint": "in checkpoints",
}
"""Where the phases without steps are."""
BETWEEN = "before and between the loops whose steps are told"
"""Where that is to which the program comes back after an evaluation, where nothing trains."""


def describe_part(report: Report, trace: int) -> str:
    """What was recorded of the process that a trace is of: ``steps 72–74 of train: 400 steps, 88 % of the run
    (16.9 s)``."""
    info = report.traces[trace]
    if info.run is None:
        return _without_run(report.traces)
    said = _of_run(info.run, _phases(report, trace), info)
    processes = group_processes(report.traces)
    mine = next(
        (
            label
            for one, label in zip(processes, label_processes(processes, report.traces), strict=True)
            if trace in one.traces
        ),
        "",
    )
    return f"{mine}: {said}" if mine and len(processes) > 1 else said


def _without_run(traces: Sequence[TraceInfo]) -> str:
    """Steps of traces that say nothing of the rest of the program."""
    least, most = min(info.steps.count for info in traces), max(info.steps.count for info in traces)
    steps = count(most, "step") if least == most else f"{least} to {most} steps"
    if len(traces) == 1:
        return f"{steps if most else 'a trace without steps'}; {'their' if most > 1 else 'its'} {UNKNOWN}"
    what = f"{steps} of each of {len(traces)} traces" if most else f"{len(traces)} traces without steps"
    return f"{what}; their {UNKNOWN}"


def _of_run(run: Run, phases: Sequence[str], info: TraceInfo) -> str:
    """The recorded steps of each phase, with the share of the run that the phase takes."""
    if is_counted_only(info) and not phases:
        steps = f" of {count(run.steps, 'step')}" if run.steps else ""
        return f"no steps: the waits{steps} were counted over {seconds(run.seconds)}"
    said = list(_each(run, phases))
    if not said:
        return (
            f"{count(info.steps.count, 'step') if info.steps.count else 'a window'} of a run of {seconds(run.seconds)}"
        )
    left = len(said) - MOST_PHASES
    more = f"; {count(left, 'more phase')}" if left > 0 else ""
    return f"{'; '.join(said[:MOST_PHASES])}{more}{_elsewhere(run)}; the run took {seconds(run.seconds)}"


def _elsewhere(run: Run) -> str:
    """The longest phase that no window recorded, or the first steps of one, where they take much of the run: nothing
    that is told of steps shortens it."""
    parts = [(phase.share, _where(phase)) for phase in run.phases if not phase.recorded]
    for number, phase in enumerate(run.phases):
        if phase.recorded and (taken := find_first_steps(run, number)) is not None:
            parts.append((taken / run.seconds, f"in the first steps of {phase.name}"))
    share, where = max(parts, default=(0.0, ""))
    return f"; {describe_share(share)} of the run is {where}, which no window recorded" if share >= MUCH else ""


def _where(phase: Phase) -> str:
    if phase.kind == "start" and phase.times > 1:  # the program came back to it
        return BETWEEN
    return WHERE.get(phase.kind, f"in {phase.name}")


def _each(run: Run, names: Sequence[str]) -> Iterator[str]:
    for name in names:
        number = next((index for index, phase in enumerate(run.phases) if phase.name == name), None)
        if number is None:
            continue
        phase, steps = run.phases[number], describe_recorded(run, number)
        told = steps[:1].isdigit()
        which = f"{'steps' if '–' in steps else 'step'} {steps} of {name}" if told else name
        of = f"{count(phase.steps, 'step')}, " if phase.steps else ""
        loop = f"{phase.where.split()[0]}; " if phase.kind == "other" and phase.where else ""
        yield f"{which} ({loop}{of}{describe_share(phase.share)} of the run)"


def _phases(report: Report, trace: int) -> list[str]:
    """The phases that were recorded in the process of a trace, that of the trace first, then the longest."""
    process = next((one for one in group_processes(report.traces) if trace in one.traces), None)
    run = report.traces[trace].run
    if process is None or run is None:
        return []
    mine = [report.traces[number].phase for number in (trace, *process.traces)]
    own, *others = [name for name in dict.fromkeys(mine) if name is not None and find_phase(run, name)] or [""]
    return [own, *sorted(others, key=lambda name: -_share(run, name))] if own else []


def _share(run: Run, name: str) -> float:
    phase = find_phase(run, name)
    return phase.share if phase is not None else 0.0
