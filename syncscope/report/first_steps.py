"""The first steps of a phase, where they take a good part of the run: workers of a loader start, kernels are loaded and
compiled, memory is allocated. They are part of the phase's share, and of none of its figures of a step."""

from __future__ import annotations

from syncscope.schema.run import Run

MOST_STEPS = 3
"""The first stretch of a phase is told where it holds no more steps than these."""
LEAST = 0.1
"""Share of the run that they take beyond what so many other steps do."""


def find_first_steps(run: Run, number: int) -> float | None:
    """Seconds that the first steps of a phase take, ``None`` where that is little, or not known."""
    phase = run.phases[number]
    first = next((stretch for stretch in run.stretches if stretch.phase == number), None)
    if not phase.steps or phase.step_ms is None or first is None or first.windows or first.steps > MOST_STEPS:
        return None
    more = first.seconds - first.steps * phase.step_ms.typical / 1000
    return first.seconds if more >= LEAST * run.seconds else None
