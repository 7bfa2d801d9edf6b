"""Which phases of a run are judged: training, else the longest phase, unless the policy says otherwise."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from syncscope.policy.policy import Policy
from syncscope.schema.findings import TRAINING, Finding
from syncscope.schema.report import Report, TraceInfo
from syncscope.schema.run import Phase


def judged_phases(report: Report, policy: Policy) -> tuple[frozenset[str] | None, ...]:
    """For each trace, the names of the phases of its process that are judged; ``None`` where the run is not known, and
    everything is judged.

    Only phases that the given traces speak for can be judged. So a trace of evaluation alone is judged by evaluation.
    """
    phases: dict[object, dict[str, Phase]] = {}
    for info in report.traces:
        if info.run is not None:
            phases.setdefault(process_of(info), {}).update({phase.name: phase for phase in spoken_for(info)})
    judged = {process: frozenset(_choose(known.values(), policy)) for process, known in phases.items()}
    return tuple(None if info.run is None else judged[process_of(info)] for info in report.traces)


def spoken_for(info: TraceInfo) -> Iterator[Phase]:
    """The phases whose findings are reported for a trace: its own, and in the main trace of a process those without a
    window."""
    if info.run is None:
        return
    for phase in info.run.phases:
        if phase.name == info.phase or (info.run.main and not phase.recorded):
            yield phase


def is_judged(finding: Finding, judged: tuple[frozenset[str] | None, ...]) -> bool:
    """Whether the finding is of a phase that is judged."""
    names = judged[finding.trace]
    return names is None or finding.phase is None or finding.phase in names


def has_judged_phase(info: TraceInfo, names: frozenset[str] | None) -> bool:
    """Whether the trace speaks for a phase that is judged."""
    if info.run is None or names is None or info.phase is None:
        return True
    return any(phase.name in names for phase in spoken_for(info))


def process_of(info: TraceInfo) -> object:
    """What tells the process of a trace whose run is known."""
    assert info.run is not None
    return info.run.id, info.rank, info.run.pid


def _choose(phases: Iterable[Phase], policy: Policy) -> Iterator[str]:
    known = list(phases)
    if policy.phases is not None:
        yield from (phase.name for phase in known if {phase.name, phase.kind} & set(policy.phases))
        return
    training = [phase for phase in known if phase.kind == TRAINING]
    stepping = [phase for phase in known if phase.steps] or known
    yield from (phase.name for phase in training or sorted(stepping, key=lambda phase: -phase.share)[:1])
