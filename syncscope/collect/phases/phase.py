"""One phase of a program: what it does in one loop, its steps and its time."""

from __future__ import annotations

import random
import statistics
import weakref
from types import CodeType
from typing import Any

from syncscope.collect.phases.loops import Loop
from syncscope.schema.counting import CountedSource, PhaseKind

RESERVOIR = 512
"""Lengths of steps kept of a phase."""


class Reservoir:
    """Numbers drawn evenly from all that were added, at most ``RESERVOIR``."""

    def __init__(self) -> None:
        self._kept: list[int] = []
        self._seen = 0
        self._draw = random.Random(0)  # the program's own random numbers stay as they are

    def add(self, number: int) -> None:
        self._seen += 1
        if len(self._kept) < RESERVOIR:
            self._kept.append(number)
        elif (place := int(self._draw.random() * self._seen)) < RESERVOIR:
            self._kept[place] = number

    def median(self) -> int | None:
        return int(statistics.median(self._kept)) if self._kept else None

    def p95(self) -> int | None:
        if not self._kept:
            return None
        return sorted(self._kept)[min(len(self._kept) - 1, int(0.95 * len(self._kept)))]


class Phase:
    """One loop of the program. Changes as more is seen; the object stays.

    ``name`` may change until the end, when another phase of the same kind turns up. ``slug`` is for file names: it
    never changes once it has been read.
    """

    def __init__(self, number: int, kind: PhaseKind, loop: Loop | None = None) -> None:
        self.number = number
        self.kind = kind
        self.name: str = kind
        self.loop = loop
        """The loop by which it is known; ``None`` for ``start``, ``epoch end``, ``checkpoint`` and where there is
        no loop."""
        self.user_code: CodeType | None = None
        """The function of the user's that runs the loop, or calls the library that does."""
        self.user_line: int | None = None
        self.source: CountedSource = "none"
        self.steps = 0
        self.times = 0
        self.time_ns = 0
        self.in_every_step_of: Phase | None = None
        self.folded_into: Phase | None = None
        self.intruded = False
        """Another phase came in since the last boundary. Reset after ``Listener.stepped``."""
        self.lengths = Reservoir()
        self.step_ns = 0
        """Time since the last boundary, without what intruded."""
        self._slug: str | None = None
        self._others: list[Phase] = []

        # How the tracker finds it and its steps.
        self.loops: set[Loop] = {loop} if loop is not None else set()
        self.around: set[Loop] = set()
        """Loops that enclose it."""
        self.frame_id = 0
        """The frame that runs its loop, while it runs."""
        self.ended = False
        """Its loader was exhausted."""
        self.owns_function = False
        """No other phase has a loop in the same function: the rest of the function is part of the phase."""
        self.owner: weakref.ref[Any] | None = None
        """The optimiser or module whose call is the boundary."""
        self.seen: dict[int, int] = {}
        self.training_calls = 0
        self.since_owner = 0
        self.by_batch = False
        """The first call after each batch of its loader is the boundary."""
        self.batches = 0
        """Batches of the loader of its loop."""
        self.counted_batch = 0
        self.calls = 0
        """Calls since the training's last boundary."""
        self.few = 0
        self.many = 0

    @property
    def slug(self) -> str:
        """A short name for files, fixed once it has been read."""
        if self._slug is None:
            base = self.kind.replace(" ", "_")
            taken = {other._slug for other in self._others}
            number = 1
            while (slug := base if number == 1 else f"{base}{number}") in taken:
                number += 1
            self._slug = slug
        return self._slug

    def join(self, phases: list[Phase]) -> None:
        """Tell it of all phases of the run: its slug differs from theirs."""
        self._others = phases

    def restart(self) -> None:
        """Begin to count its steps again."""
        self.source = "none"
        self.owner = None
        self.seen.clear()
        self.steps = self.step_ns = self.training_calls = self.since_owner = 0
        self.lengths = Reservoir()

    def __repr__(self) -> str:
        return f"<Phase {self.number} {self.name}: {self.steps} steps>"
