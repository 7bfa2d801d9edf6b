"""The step of a phase in the midst of which another one began last."""

from __future__ import annotations

from syncscope.collect.count.stays import FEWEST

BEFORE, AFTER, LATE, PARTS = 0, 1, 2, 3
"""Parts of such a step: what comes before the other phase, and what comes after it, which may be counted from the
moment when the other one is over, or only from later on."""


SELDOM_INSIDE = ("evaluate", "generate", "rollout", "checkpoint")
"""Phases in the midst of another one's step, after which the rest of that is counted, ..."""

INSIDE = (*SELDOM_INSIDE, "epoch end")
"""... and those by which what comes right before them or after them is told."""


GOES_ON, EVALUATED = ("train", "epoch end"), 1 << 20
"""What follows an evaluation, and the number that stands for any of it: only where the last step was counted, a wait
tells that the epoch ends before the training goes on."""


class Visitors:
    """What comes before another phase and after it waits in this step, and in no other one but those of further visits.
    Where it begins in nearly every step, these are alike."""

    def __init__(self) -> None:
        self._step = -FEWEST
        self._visitor: int | None = None
        """The number of the phase that began in ``_step``; ``None`` where steps are alike in that, or the step is over.
        """
        self.heard_end = False
        """Waits were counted when it was over. Until that is told, those that follow it may be missed."""

    def begin(self, step: int, visitor: int) -> bool:
        """The phase with the number ``visitor`` begins in ``step``. Returns whether few steps are like that."""
        alike = 0 < step - self._step < FEWEST
        self._step, self._visitor = step, None if alike else visitor
        return not alike

    def end_step(self, since: int, steps: int) -> tuple[int, int] | None:
        """So many ``steps`` are over, the first of them ``since``. Returns the one that was visited, and by whom."""
        visitor = self._visitor
        if visitor is None or not since <= self._step < since + steps:
            return None
        self._visitor = None
        return self._step, visitor
