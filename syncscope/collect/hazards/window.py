"""The window that looks for races: everything put in place, and everything taken away again."""

from __future__ import annotations

from typing import Any

from syncscope.collect.hazards.clocks import Clocks
from syncscope.collect.hazards.machine import Cuda, Machine
from syncscope.collect.hazards.modes import Eyes
from syncscope.collect.hazards.waits import Waits
from syncscope.collect.hazards.watch import Watch
from syncscope.collect.sites.stacks import Stacks
from syncscope.collect.sites.threads import Threads
from syncscope.schema.recording import HazardEvent


class Hazards:
    """Looks for races on the thread that opens it, from ``open`` to ``close``. Several windows may share ``stacks``.

    ``notes`` says what it could not follow, one sentence each.
    """

    def __init__(self, torch: Any, stacks: Stacks, threads: Threads, machine: Machine | None = None) -> None:
        self.notes: list[str] = []
        clocks = Clocks()
        self._watch = Watch(torch.Tensor, machine or Cuda(torch), clocks, stacks.take, threads.current)
        self._waits = Waits(torch, clocks)
        self._eyes = Eyes(torch, self._watch, self._failed)
        self._blind: set[str] = set()

    def open(self) -> None:
        self._waits.open()
        self._eyes.open()

    def close(self) -> None:
        self._eyes.close()
        self._waits.close()

    def take(self) -> tuple[HazardEvent, ...]:
        """The races so far, in the order they were first seen; the list starts anew."""
        return self._watch.races.take()

    def _failed(self, what: str, error: Exception) -> None:
        if what not in self._blind:
            self._blind.add(what)
            self.notes.append(f"{what} was not followed while looking for races ({type(error).__name__}: {error}).")
