"""The window that looks for races: it puts every hook in place and takes them all away again."""

from __future__ import annotations

import contextlib
import threading
from typing import Any

from syncscope.collect import features
from syncscope.collect.hazards.backward import BackwardOrder
from syncscope.collect.hazards.detector import RaceDetector
from syncscope.collect.hazards.implicit import ImplicitWaits
from syncscope.collect.hazards.modes import OperatorHooks
from syncscope.collect.hazards.runtime import CudaRuntime, Runtime
from syncscope.collect.hazards.synchronization import SynchronizationHooks
from syncscope.collect.hazards.vector_clocks import Clocks
from syncscope.collect.sites.stacks import Stacks
from syncscope.collect.sites.threads import Threads
from syncscope.schema.recording import HazardEvent


class HazardWindow:
    """Looks for races on the thread that opens it, from ``open`` to ``close``. Several windows may share ``stacks``.

    ``notes`` says what it could not follow, one sentence each. Raises ``features.Unsupported`` where this version of
    PyTorch lacks what the hooks need.
    """

    def __init__(self, torch: Any, stacks: Stacks, threads: Threads, runtime: Runtime | None = None) -> None:
        features.require(torch, features.HAZARDS, "look for races")
        self.notes: list[str] = []
        runtime = runtime or CudaRuntime(torch)
        self.clocks = Clocks()
        implicit = ImplicitWaits(torch, self.clocks, runtime)
        backward = BackwardOrder(torch, self.clocks, runtime, self._on_window_thread)
        self._detector = RaceDetector(torch.Tensor, runtime, self.clocks, backward, stacks.take, threads.current)
        self._hooks = (
            SynchronizationHooks(torch, self.clocks, runtime, implicit, self._note),
            implicit,
            backward,
            OperatorHooks(torch, self._detector, implicit, self._note),
        )
        self._noted: set[str] = set()

    def open(self) -> None:
        with contextlib.ExitStack() as opened:
            for hooks in self._hooks:
                opened.callback(hooks.close)
                hooks.open()
            opened.pop_all()  # all are open: ``close`` takes them away

    def close(self) -> None:
        for hooks in reversed(self._hooks):
            hooks.close()

    def take(self) -> tuple[HazardEvent, ...]:
        """The races so far, in the order they were first seen. Empties the list."""
        return self._detector.races.take()

    def _on_window_thread(self) -> bool:
        return threading.get_ident() == self._detector.thread

    def _note(self, what: str, error: Exception) -> None:
        if what not in self._noted:
            self._noted.add(what)
            self.notes.append(f"{what} was not followed while looking for races ({type(error).__name__}: {error}).")
