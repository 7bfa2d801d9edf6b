"""From replays to savings: what each finding is worth, what all are worth together, and between which bounds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from syncscope.estimate.edits import Question, together
from syncscope.estimate.machine import Replayed, replay
from syncscope.estimate.program import Program
from syncscope.estimate.scale import WARM, Fit, steady
from syncscope.timeline.intervals import Floats


@dataclass(frozen=True)
class Saving:
    """Milliseconds a step."""

    ms: float
    low: float
    high: float


@dataclass(frozen=True)
class Answers:
    each: tuple[Saving, ...]
    """In the order of the questions."""
    all: Saving
    step_ms: float
    """The step as it is, in steady state."""
    replayed: Replayed
    """Question 0 changes nothing, the last everything."""


def answer(program: Program, questions: Sequence[Question], fit: Fit) -> Answers:
    """Replay in steady state: nothing changed, each question, and all of them."""
    asked = [{}, *questions, together(questions)]
    replayed = replay(program, asked, fit.scales, steady(program.steps))
    lengths = np.diff(replayed.ends[WARM - 1 :], axis=0) * 1e-6
    # By recorded step: each is replayed as often as the others.
    by_step = lengths.reshape(-1, program.steps, *lengths.shape[1:]).mean(axis=0)
    saved = by_step[:, :1] - by_step
    step = float(by_step[:, 0, 0].mean())
    savings = [_saving(saved[:, number], step) for number in range(1, len(asked))]
    every, single = savings[-1], savings[:-1]
    # Nobody who fixes all need save less than by fixing one.
    whole = Saving(*(max((getattr(s, name) for s in single), default=0.0) for name in ("ms", "low", "high")))
    every = Saving(max(every.ms, whole.ms), max(every.low, whole.low), max(every.high, whole.high))
    return Answers(tuple(single), every, step, replayed)


def _saving(saved: Floats, step: float) -> Saving:
    """From savings by step and scale (steps, scales); the first scale is the likely one."""
    means = saved.mean(axis=0)
    steps = len(saved)
    spread = 2 * float(saved[:, 0].std(ddof=1)) / steps**0.5 if steps > 1 else 0.0
    low, high = float(means.min()) - spread, float(means.max()) + spread
    return Saving(*(float(np.clip(ms, 0.0, step)) for ms in (means[0], low, high)))
