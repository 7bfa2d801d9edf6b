"""Follow the loops of a program of tensors alone, whose time passes as the test says."""

from __future__ import annotations

import sys
import sysconfig
from pathlib import Path

import pytest

from syncscope.collect.paths import Paths
from syncscope.collect.phases import Phase, PhaseTracker
from syncscope.collect.phases.thread import FollowedThread
from syncscope.collect.phases.turns import LoopTurns

MS = 1_000_000
SECOND = 1_000 * MS
HERE = Path(__file__).parent

needs_monitoring = pytest.mark.skipif(sys.version_info < (3, 12), reason="Python tells turns of loops from 3.12 on")


def library(name: str) -> str:
    """The file of a library."""
    return str(Path(sysconfig.get_path("purelib")) / f"{name}.py")


class Program:
    """A program of tensors alone, whose time passes in ``work``."""

    def __init__(self, unheard: int = 0) -> None:
        self.now = 10 * SECOND
        self.allocated = self.changes = 0
        self.unheard = unheard
        self.better: list[str] = []
        self.failures: list[Exception] = []
        self.optimizers = False
        self.tracker = PhaseTracker(self, Paths(HERE), lambda: self.now)
        self.followed = FollowedThread(self.tracker)
        self.turns = LoopTurns(
            self.tracker, self.followed, self.failures.append, lambda: self.optimizers, clock=lambda: self.now
        )
        self.turns.allocations = lambda: self.allocated
        self._next_look = self.now

    def stepped(self, phase: Phase) -> int:
        return self.unheard

    def changed(self, before: Phase, after: Phase) -> None:
        self.changes += 1

    def folded(self, phase: Phase, into: Phase) -> None: ...

    def better_source(self, phase: Phase) -> None:
        self.better.append(phase.kind)

    def work(self, length_ns: int = 10 * MS, allocates: int = 1) -> None:
        """Operators run for so long. Every half a second a thread of ours looks where the program is."""
        self.now += length_ns
        self.allocated += allocates
        if self.now >= self._next_look:
            self._next_look = self.now + SECOND // 2
            self.turns.look()

    def here(self) -> str:
        """The program waits where this is called: the kind of its phase."""
        return self.tracker.at(sys._getframe(1)).kind

    @property
    def steps(self) -> dict[str, int]:
        self.tracker.recorded()
        return {phase.name: phase.steps for phase in self.tracker.phases if phase.steps}

    def phase(self) -> Phase:
        """The only phase with steps."""
        self.tracker.recorded()
        (phase,) = (phase for phase in self.tracker.phases if phase.steps)
        return phase
