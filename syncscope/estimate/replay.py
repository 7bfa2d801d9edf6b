"""Run a program again, as it was or changed in many ways at once.

Everything happens as early as what it needs allows: the host goes from call to call; an activity begins when it is
launched, the one before it in its stream is done, and so is what else it waits for; a wait returns when its targets
are done. Each of these times is a maximum of sums, so one run answers any number of questions: every time is a row
of numbers, one a column, and a column is one question in one scenario. ``columns`` says which questions have columns.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import msgspec
import numpy as np

from syncscope.estimate.columns import Part
from syncscope.estimate.edits import Edits, Question
from syncscope.estimate.machine import Machine
from syncscope.estimate.program import Program
from syncscope.estimate.replay_rows import Interval
from syncscope.timeline.intervals import Floats

SLOWDOWN = 0.75
"""Share of a collective's time by which the compute beside it takes longer: 0.5 to 1, measured on two H200 that NVLink
joins, with compute that fills the device."""


class Slowed(NamedTuple):
    """A replay towards which the last step is moved."""

    last: tuple[Interval, ...]
    parts: tuple[tuple[Part, ...], ...]
    part: Floats
    """How far, by question (questions,)."""


class Scenario(NamedTuple):
    """What is assumed where the trace does not say."""

    host: float = 1.0
    """Factor on the host's work, after the profiler's share is taken off."""
    pageable: float = 1.0
    """Factor on the time of copies from and to pageable memory."""
    worker_paced: float = 0.0
    """1 when batches come at the pace of worker processes, 0 when loading one is the host's own work."""
    slowdown: float = SLOWDOWN
    """Share of a collective's time by which it lengthens the compute that it is moved beside."""


class Replayed(msgspec.Struct, frozen=True):
    """Times in ns since the first step began, (steps, questions, scenarios)."""

    host: Floats
    """When the host ended each step."""
    device: Floats
    """When the device was done with all that had been launched by then."""
    last: tuple[Interval, ...]
    """What took time in the last step, where it is drawn; columns are questions, or the slots of ``parts``, and within
    each the scenarios."""
    parts: tuple[tuple[Part, ...], ...] = ()
    """Where the questions' last steps are in ``last``; nothing where each has columns of its own."""
    slowed: Slowed | None = None
    """Where ``last`` lies on the way to another replay, and is not moved yet."""
    probed: tuple[tuple[int, int, Floats], ...] = ()
    """When the host was done with a probed item: number of the replayed step, item, (columns,)."""

    @property
    def ends(self) -> Floats:
        """When each step was over."""
        ends: Floats = np.maximum(self.host, self.device)
        return ends


def replay(
    program: Program,
    questions: Sequence[Edits | Question],
    scenarios: Sequence[Scenario],
    steps: Sequence[int] | None = None,
    *,
    profiled: bool = False,
    on_one_rank: Sequence[bool] = (),
    probes: frozenset[int] = frozenset(),
    drawn: bool = False,
) -> Replayed:
    """Run ``steps`` (the recorded ones once), from an idle device.

    The profiler's share is taken off the host's work first, unless ``profiled``. A question that is ``on_one_rank``
    changes nothing on the other ranks; with such a question, question 0 must change nothing. What took time
    in the last step is kept where it is ``drawn``.
    """
    order = range(program.steps) if steps is None else steps
    every, assumed = list(map(Question.of, questions)), np.array(scenarios, dtype=np.float64)
    machine = Machine(program, every, assumed, frozenset(order), profiled, on_one_rank, probes)
    for number, step in enumerate(order):
        machine.step(number, step, drawn=drawn and number == len(order) - 1)
    shape = (len(order), len(questions), len(scenarios))
    host, device = (np.array(times).reshape(shape) for times in (machine.hosts, machine.devices))
    return Replayed(host, device, tuple(machine.recorded), machine.parts(), probed=tuple(machine.probed))
