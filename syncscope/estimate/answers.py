"""From replays to savings: what each finding is worth, what all are worth together, and between which bounds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from syncscope.estimate.edits import Question, together
from syncscope.estimate.machine import Replayed, replay
from syncscope.estimate.program import Program
from syncscope.estimate.scale import Fit, steady
from syncscope.timeline.intervals import Floats

DRIFT = 0.01
"""Share of the step by which the same program differs from one time it is measured to the next."""


@dataclass(frozen=True)
class Saving:
    """Milliseconds a step."""

    ms: float | None = None
    """``None`` where only the bounds are known."""
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True)
class Answers:
    each: tuple[Saving, ...]
    """In the order of the questions."""
    all: Saving
    step_ms: float
    """The step as it is, in steady state."""
    replayed: Replayed
    """Question 0 changes nothing, the last everything."""


def answer(program: Program, questions: Sequence[Question], fit: Fit, lone: Sequence[bool] = ()) -> Answers:
    """Replay in steady state: nothing changed, each question, and all of them. Those are ``lone`` whose fix changes
    nothing on the other ranks; all together are, where one is."""
    asked = [{}, *questions, together(questions)]
    order, warm = steady(program)
    replayed = replay(program, asked, fit.scenarios, order, lone=(False, *lone, any(lone)))
    lengths = np.diff(replayed.ends[warm - 1 :], axis=0) * 1e-6
    # By recorded step: each is replayed as often as the others.
    by_step = lengths.reshape(-1, program.steps, *lengths.shape[1:]).mean(axis=0)
    saved = by_step[:, :1] - by_step
    step = float(by_step[:, 0, 0].mean())
    bounds = np.array([_saving(saved[:, number], step) for number in range(1, len(asked))])
    # Nobody who fixes all need save less than by fixing one.
    bounds[-1] = bounds.max(axis=0)
    savings = [
        Saving(None if fit.ranged else round(float(ms), 6), round(float(low), 6), round(float(high), 6))
        for ms, low, high in np.clip(bounds, 0.0, step)
    ]
    return Answers(tuple(savings[:-1]), savings[-1], step, replayed)


def _saving(saved: Floats, step: float) -> tuple[float, float, float]:
    """Likely, least and greatest, from savings by step and scenario (steps, scenarios); the first is the likely one.

    What is in doubt has nothing to do with each other: the steps, each pair of scenarios, and two windows of steps.
    """
    means, steps = saved.mean(axis=0), len(saved)
    likely = float(means[0])
    spread = 2 * float(saved[:, 0].std(ddof=1)) / steps**0.5 if steps > 1 else 0.0
    pairs = means[1:].reshape(-1, 2) - likely
    below, above = np.minimum(pairs.min(axis=1), 0.0), np.maximum(pairs.max(axis=1), 0.0)
    always = spread**2 + (DRIFT * step) ** 2
    return likely, likely - (always + (below**2).sum()) ** 0.5, likely + (always + (above**2).sum()) ** 0.5
