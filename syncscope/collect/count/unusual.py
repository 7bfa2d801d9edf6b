"""Steps that are unlike the others. Some last much longer: an evaluation inside of one, a mask made anew, what comes
once an epoch. In the midst of others another phase begins, which has been prepared in the step.

Were such a step drawn and told like any other, what waits in it would be told as often as if one in so many steps were
like it. But the steps that were left out took some time, and that tells how many of them may have been. How often other
phases begin is known.
"""

from __future__ import annotations

import math
from collections import defaultdict
from typing import NamedTuple

from syncscope.collect.count.visitors import AFTER, BEFORE, LATE, PARTS

MEMORY = 0.1
"""Weight of the last block of steps in what is usual."""

LONG = 2.0
"""A step that lasts much longer takes at least so many times as long as usual, ..."""

SURELY = 3.0
"""... and so many standard deviations more than as many steps as are left out before it."""

DRIFT = 0.05
"""The part of it by which the usual length may be wrong: of many steps that is much."""

OF_MEAN = 1.25
"""A standard deviation, in means of how much steps differ."""

BINS = 4
"""Excesses are told apart by such parts of a doubling, ..."""

NEAR = 2
"""... and are alike where they differ by so many."""


class Scale(NamedTuple):
    """How many times as many long steps there were as were counted."""

    likely: float = 1.0
    """Of those that took about as much longer than usual, or more."""
    most: float = 1.0
    """Of all: waits and lengths need not go together."""


class Unusual:
    """Of one phase, whose steps are drawn."""

    def __init__(self) -> None:
        self.stands_out = False
        """The step that is over, of which at least a part was counted, lasted much longer than others."""
        self._blocks = 0
        self._usual_ns = self._differs_ns = 0.0
        """How long a step lasts, and by how much steps differ from that."""
        self._counted: defaultdict[int, float] = defaultdict(float)
        """By how much long steps that were counted took longer than usual, ns, by the bin of that."""
        self._missed: defaultdict[tuple[int, int], float] = defaultdict(float)
        """The same of those that were left out, and by the bin of the excess that would not have been seen there."""
        self._counted_steps = self._missed_steps = 0
        self._visits: defaultdict[int, list[int]] = defaultdict(lambda: [0, 0])
        """Visits of other phases in the midst of steps, by the phase's number and the part of the step: those of which
        that was counted, and the others."""
        self._hides: defaultdict[int, int] = defaultdict(int)
        """Steps that were left out, by the bin of the excess that one among them may have had without being seen."""

    def learn(self, steps: int, length_ns: float) -> None:
        """So many ``steps`` took so long."""
        self._blocks += 1
        weight = max(MEMORY, 1 / self._blocks)
        each = length_ns / steps
        if self._blocks > 1:
            each = min(each, LONG * self._usual_ns)
            differs = min(abs(each - self._usual_ns) * math.sqrt(steps), self._usual_ns)
            self._differs_ns += max(MEMORY, 1 / (self._blocks - 1)) * (differs - self._differs_ns)
        self._usual_ns += weight * (each - self._usual_ns)

    def take(self, length_ns: float, one_in: float) -> int | None:
        """A step was counted that took so long; one in ``one_in`` is drawn. Returns the bin of its excess where it is
        much longer than usual, and than what as many steps as are left out before it may take without one."""
        excess = length_ns - self._usual_ns
        if excess < max((LONG - 1) * self._usual_ns, self._hidden_ns(one_in)):
            return None
        where = _bin(excess)
        self._counted[where] += excess
        self._counted_steps += 1
        return where

    def miss(self, steps: int, length_ns: float) -> None:
        """So many ``steps`` were left out, and took so long together."""
        hidden, excess = self._hidden_ns(steps), length_ns - steps * self._usual_ns
        self._hides[_bin(hidden)] += steps
        if excess >= max((LONG - 1) * self._usual_ns / 2, hidden):
            self._missed[_bin(excess), _bin(hidden)] += excess
            self._missed_steps += 1

    def visit(self, visitor: int, counted: bool, part: int = BEFORE) -> int:
        """The phase with the number ``visitor`` begins in the midst of a step, or is over there, of which that ``part``
        was ``counted``, or left out. Returns what stands for such parts in the place of a bin."""
        key = PARTS * visitor + part
        self._visits[key][not counted] += 1
        return -1 - key

    def scale(self, where: int) -> Scale:
        """Of steps in the bin ``where``. Infinite where nothing can be told of steps that were left out."""
        if where < 0:
            key = -1 - where
            seen, unseen = self._visits[key]
            if key % PARTS == AFTER:  # what only the late ones had is not known to be in these
                unseen += self._visits[key - AFTER + LATE][0]
            elif key % PARTS == LATE:
                whole, unseen = self._visits[key - LATE + AFTER]
                if whole:
                    return Scale(0.0, 1.0)  # these tell all of them
            return Scale(1 + unseen / max(seen, 1), 1 + (unseen + (unseen > 0)) / max(seen, 1))
        least = where - NEAR
        counted = sum(excess for each, excess in tuple(self._counted.items()) if each >= least)
        missed = sum(
            excess for (each, hidden), excess in tuple(self._missed.items()) if hidden <= where and each >= least
        )
        hides = tuple(self._hides.items())
        known, every = sum(steps for each, steps in hides if each <= where), sum(steps for _, steps in hides)
        if not counted or (every and not known):
            return Scale(math.inf, math.inf)
        likely = 1 + missed / counted * every / max(known, 1)
        return Scale(likely, max(likely, 1 + self._missed_steps / max(self._counted_steps, 1)))

    def _hidden_ns(self, steps: float) -> float:
        """By how much so many usual steps may take longer together."""
        return SURELY * OF_MEAN * self._differs_ns * math.sqrt(steps) + DRIFT * self._usual_ns * steps


def _bin(excess_ns: float) -> int:
    return math.floor(BINS * math.log2(max(excess_ns, 1.0)))
