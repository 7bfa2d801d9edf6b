"""Which questions have columns of their own in a replay, so that many cost little more than one.

What a question changes is a stretch of the step. Before it, the question is at the same times as question 0, which
changes nothing, and once everything that can still matter is later by one amount, it stays later by just that amount
until its next edit: each time is a maximum of sums. So only questions that differ in more than an amount have a slot,
which is a column for each scenario; of the others the amount is kept. Few questions have a slot from begin to end.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np

from syncscope.timeline.intervals import Bools, Floats, Ints

FEW = 64
"""Up to so many questions each keeps a slot from begin to end."""

OFTEN = 0.1
"""A question that changes at least this share of the items keeps its slot."""

SPARE = 8
"""Slots at first for questions that come and go."""

FULL = 6
"""So many questions have one of those slots before any is looked for that needs none: a look costs more than a slot."""

ALIKE = 1e-3
"""Nanoseconds by which amounts may differ: rounding."""

LONGEST_PAUSE = 64
"""The most occasions that pass from one look for questions that need no slot to the next."""


class Part(NamedTuple):
    """A question during a part of the last step: which column it is in, and by how much it is later."""

    begin: int
    end: int
    """Numbers of the intervals."""
    slot: int
    later: float
    """ns, in the likely scenario."""


class Columns:
    """The slots of one replay. ``times`` (rows, slots × scenarios) is all that it knows of the present."""

    def __init__(self, rows: int, questions: int, scenarios: int, lasting: Sequence[int]) -> None:
        """``lasting`` are the questions that keep a slot, 0 the first of them."""
        self.many, self.scenarios = questions, scenarios
        self.sparse = len(lasting) < questions
        self.slots = len(lasting) + (SPARE if self.sparse else 0)
        self.times = np.zeros((rows, self.slots * scenarios))
        self.later = np.zeros((questions, scenarios))
        """By how much each question without a slot is later than question 0."""
        self.slot = np.full(questions, -1)
        self.slot[list(lasting)] = np.arange(len(lasting))
        self.visiting: dict[int, int] = {}
        """The slots of the questions that come and go."""
        self.lasting_width = len(lasting) * scenarios
        self._free = list(range(self.slots))[: len(lasting) - 1 : -1]
        self._pause = self._due = 1
        self.intervals: int | None = None
        """Intervals drawn so far of the last step; ``None`` before it."""
        self._parts: dict[int, list[Part]] = {}

    @property
    def width(self) -> int:
        return self.slots * self.scenarios

    def tile(self, values: Floats | Ints | Bools) -> np.ndarray:
        """Values of the scenarios (scenarios,) as columns."""
        return np.tile(values, self.slots)

    def spread(self, values: Floats | Bools) -> np.ndarray:
        """Values of the questions (questions,) as columns."""
        by_slot = np.zeros(self.slots, dtype=values.dtype)
        by_slot[self.slot[self.slot >= 0]] = values[self.slot >= 0]
        return np.repeat(by_slot, self.scenarios)

    def unlasting(self) -> Ints:
        """The columns of question 0 and of the questions that come and go."""
        slots = np.array([0, *self.visiting.values()])
        columns: Ints = (slots[:, None] * self.scenarios + np.arange(self.scenarios)).ravel()
        return columns

    def block(self, slot: int) -> slice:
        return slice(slot * self.scenarios, (slot + 1) * self.scenarios)

    # --------------------------------------------------------------------------------------- coming and going

    def lacking(self, questions: Iterable[int]) -> list[int]:
        """Those of some questions that have no slot."""
        return [number for number in questions if self.slot[number] < 0]

    def short_of(self, more: int) -> bool:
        return len(self._free) < more

    def grow(self, more: int) -> None:
        """Make room for so many questions more."""
        added = max(more, self.slots)
        self._free = [*range(self.slots, self.slots + added)[::-1], *self._free]
        self.slots += added
        self.times = self.widened(self.times)

    def widened(self, values: Floats) -> Floats:
        """Values by column (…, columns), with those of question 0 in the columns that were added."""
        added = self.slots - values.shape[-1] // self.scenarios
        first = np.tile(values[..., : self.scenarios], added)
        wide: Floats = np.concatenate([values, first], axis=-1)
        return wide

    def enter(self, number: int, past: Iterable[Floats]) -> None:
        """Give a question a slot: the times of question 0, and what is later. ``past`` are moments (columns,) that may
        matter besides ``times``."""
        slot = self._free.pop()
        later, block, first = self.later[number], self.block(slot), self.block(0)
        self._close(number, 0)
        self.times[:, block] = self.times[:, first] + later
        for moment in past:
            moment[block] = moment[first] + later
        self.slot[number] = self.visiting[number] = slot

    def is_time_to_look(self) -> bool:
        """Whether to look for questions that need no slot: once some have one, and the longer, the more often none was
        found."""
        if len(self.visiting) < FULL:
            return False
        self._due -= 1
        return self._due <= 0

    def leave(self, known: Floats) -> None:
        """Take the slots of questions that are later in all that is ``known`` (moments, columns) by one amount."""
        slots = np.array(list(self.visiting.values()))
        table = known.reshape(len(known), self.slots, self.scenarios)
        apart = table[:, slots] - table[:, :1]
        least, most = apart.min(axis=0), apart.max(axis=0)
        alike = ((most - least) <= ALIKE).all(axis=1)
        for number, later, gone in zip(list(self.visiting), apart[0], alike.tolist(), strict=True):
            if gone:
                self._close(number, int(self.slot[number]))
                self.later[number] = later
                self._free.append(self.visiting.pop(number))
                self.slot[number] = -1
        self._pause = 1 if alike.any() else min(2 * self._pause, LONGEST_PAUSE)
        self._due = self._pause

    # ------------------------------------------------------------------------------------------------ answers

    def by_question(self, moment: Floats) -> Floats:
        """A moment (columns,) for each question and scenario (questions, scenarios)."""
        table = moment.reshape(self.slots, self.scenarios)
        if not self.sparse:
            return table.copy()
        found: Floats = table[0] + self.later
        own = self.slot >= 0
        found[own] = table[self.slot[own]]
        return found

    def _close(self, number: int, slot: int) -> None:
        """The part of the last step that a question has spent in a column ends."""
        if self.intervals is None:
            return
        parts = self._parts.setdefault(number, [])
        begin = parts[-1].end if parts else 0
        if begin < self.intervals:
            later = 0.0 if slot else float(self.later[number, 0])
            parts.append(Part(begin, self.intervals, slot, later))

    def parts(self) -> tuple[tuple[Part, ...], ...]:
        """The parts of the last step of each question; nothing where each has a column of its own."""
        if not self.sparse:
            return ()
        for number in range(self.many):
            self._close(number, max(int(self.slot[number]), 0))
        return tuple(tuple(self._parts.get(number, ())) for number in range(self.many))
