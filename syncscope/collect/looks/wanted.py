"""Which lines need a look, and in which steps they are expected."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from syncscope.schema.counting import CountedWait, RecordedPhase, RecordedRun
from syncscope.schema.expressions import ops_of_expression
from syncscope.schema.recording import RecordedFrame

OFTEN = 0.5
"""A line that waits in at least this share of the steps is expected in each of them."""

STEPLESS = ("epoch end", "checkpoint")

SHORT_NS = 2_000_000_000
"""A phase without steps is looked at where it takes no longer at a time."""


@dataclass(frozen=True)
class Expected:
    """Every ``period``-th step from ``last`` on."""

    last: int
    period: float

    def holds(self, step: int) -> bool:
        """Whether the line is expected to wait in ``step``."""
        turns = round((step - self.last) / self.period)
        return turns > 0 and step == round(self.last + turns * self.period)


Wanted = Mapping[int, tuple[Expected, ...]]
"""By the number of a phase the steps to look at; none of them where the phase has no steps."""


def unknown_stacks(
    run: RecordedRun,
    frames: Sequence[RecordedFrame],
    stacks: Sequence[Sequence[int]],
    known: Collection[int],
) -> set[int]:
    """The stacks of the counted waits whose op nothing tells: no window and no look (``known``), and not the expression
    that waits."""
    found = set()
    for wait in run.waits:
        told = wait.kind != "warning" or wait.name or wait.direction or wait.may_wait or wait.compiling
        told = told or wait.stack in known
        stack = stacks[wait.stack] if not told and wait.stack < len(stacks) else ()
        if stack and not ops_of_expression(frames[stack[-1]].expression):
            found.add(wait.stack)
    return found


def choose_steps(run: RecordedRun, stacks: Collection[int], tried: Mapping[int, int], most: int) -> Wanted:
    """Where ``stacks`` are expected to wait next. ``tried`` is how often each phase was looked at: ``most`` times at
    most."""
    chosen: dict[int, tuple[Expected, ...]] = {}
    for wait in run.waits:
        phase = run.phases[wait.phase]
        if wait.stack not in stacks or tried.get(wait.phase, 0) >= most:
            continue
        if phase.kind in STEPLESS:
            if phase.time_ns <= SHORT_NS * max(phase.times, 1):
                chosen[wait.phase] = ()
        elif (expected := _expect(wait, phase)) is not None:
            chosen[wait.phase] = (*chosen.get(wait.phase, ()), expected)
    return chosen


def _expect(wait: CountedWait, phase: RecordedPhase) -> Expected | None:
    """``None`` where nothing tells: the line waited once, or its phase has no steps."""
    if not phase.counted_steps:
        return None
    if wait.steps >= OFTEN * phase.counted_steps:
        return Expected(wait.last_step, 1.0)
    if wait.steps < 2 or wait.last_step <= wait.first_step or phase.counted_steps < phase.steps:
        return None
    return Expected(wait.last_step, (wait.last_step - wait.first_step) / (wait.steps - 1))
