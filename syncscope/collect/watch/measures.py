"""The figures of a run at one moment: what the live line shows and exporters send."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from syncscope.schema.counting import PhaseKind, RecordedRun


@dataclass(frozen=True)
class PhaseMeasures:
    name: str
    kind: PhaseKind
    steps: int
    """Since the begin of the run."""
    waits_per_step: float | None
    """Since the measures before; ``None`` where no step was counted meanwhile."""
    share: float
    """Of the time since the begin of the run."""


@dataclass(frozen=True)
class Measures:
    seconds: float
    """Since the program first used CUDA."""
    phases: tuple[PhaseMeasures, ...]
    lines: int
    """Lines that wait."""
    new_lines: int | None
    """Those that the baseline does not know; ``None`` without a baseline."""
    cost: float | None
    """Of counting, as a share of the time."""

    @property
    def main(self) -> PhaseMeasures | None:
        """The training that took the most time, else the phase with steps that did."""
        stepping = [phase for phase in self.phases if phase.steps]
        training = [phase for phase in stepping if phase.kind == "train"]
        return max(training or stepping, key=lambda phase: phase.share, default=None)

    @property
    def step(self) -> int:
        """Steps of training, else of the main phase: the axis of a chart."""
        training = sum(phase.steps for phase in self.phases if phase.kind == "train")
        return training or (self.main.steps if self.main is not None else 0)

    def scalars(self) -> dict[str, float]:
        """By name, ``train/waits_per_step``; what is not known is left out."""
        values: dict[str, float | None] = {"lines": self.lines, "new_lines": self.new_lines, "cost": self.cost}
        for phase in self.phases:
            values[f"{phase.name}/waits_per_step"] = phase.waits_per_step
            values[f"{phase.name}/share"] = phase.share
            values[f"{phase.name}/steps"] = phase.steps
        return {name: float(value) for name, value in values.items() if value is not None}


@dataclass
class Meter:
    """Makes measures of a run, each with the waits a step since the one before."""

    _counts: dict[int, tuple[int, int]] = field(default_factory=dict)
    """Of each phase by its number: waits and counted steps at the last measures."""

    def measure(self, run: RecordedRun, lines: int, new_lines: int | None) -> Measures:
        waits: Counter[int] = Counter()
        for wait in run.waits:
            if not wait.may_wait and not wait.compiling:
                waits[wait.phase] += wait.count
        phases: list[PhaseMeasures] = []
        for number, phase in enumerate(run.phases):
            before = self._counts.get(number, (0, 0))
            count, steps = waits[number] - before[0], phase.counted_steps - before[1]
            if count < 0 or steps < 0:  # it was counted anew, or became part of another phase
                count, steps = waits[number], phase.counted_steps
            if steps > 0:
                self._counts[number] = waits[number], phase.counted_steps
            phases.append(
                PhaseMeasures(
                    name=phase.name,
                    kind=phase.kind,
                    steps=phase.steps,
                    waits_per_step=count / steps if steps > 0 else None,
                    share=phase.time_ns / run.time_ns if run.time_ns else 0.0,
                )
            )
        return Measures(run.time_ns / 1e9, tuple(phases), lines, new_lines, run.overhead_share)
