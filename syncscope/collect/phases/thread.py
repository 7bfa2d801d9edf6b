"""Which of the program's threads is followed: the loops of one thread tell the phases."""

from __future__ import annotations

import threading
from typing import Literal

from syncscope.collect.phases.tracker import PhaseTracker
from syncscope.collect.sites.threads import live_threads

TRIES = 64
"""Calls of other threads, before one of them is followed instead of one that is not the main thread either."""

MOST = 1_000
"""Threads that are kept for the number of those that call modules."""


class FollowedThread:
    """The main thread, unless the program trains on another one, or the main thread does nothing of interest.

    Threads that Python did not start, such as those of the autograd engine, are never followed.
    """

    def __init__(self, tracker: PhaseTracker) -> None:
        self.ident = self._main = threading.main_thread().ident or 0
        self._tracker = tracker
        self.trains = False
        """An optimiser stepped on it."""
        self.others: set[int] = set()
        """Threads that called modules while another one was followed that is not the main thread."""
        self._tries = 0

    @property
    def note(self) -> str | None:
        """What a reader must know of the steps where several threads make them."""
        if self.ident == self._main or not self.others:
            return None
        return (
            f"Steps are those of one thread. {len(self.others)} more call modules, and what they wait for is counted in"
            " its steps too: frequencies a step are of all of them together."
        )

    def optimizer_stepped(self) -> bool:
        """An optimiser stepped, on any thread. Returns whether it is to be told: not that of a further thread."""
        here = threading.get_ident()
        if here == self.ident:
            self.trains = True
            return True
        if not _is_pythons(here):
            return True
        if self.trains and self.ident in live_threads:
            return False
        self._follow(here)
        self.trains = True
        return True

    def takes_over(self) -> bool:
        """Another thread calls a module or takes a batch. Returns whether that one is followed from now on."""
        here, gone = threading.get_ident(), self.ident not in live_threads
        idle = not any(phase.loop is not None for phase in self._tracker.phases)
        if not _is_pythons(here):
            return False
        if not (gone or (not self.trains and (here == self._main or idle))):
            return self._is_beside(here)
        if self._main not in (here, self.ident) and not gone:  # threads of a pool call in turn
            self._tries += 1
            if self._tries < TRIES:
                return self._is_beside(here)
        self._follow(here)
        return True

    def _is_beside(self, here: int) -> Literal[False]:
        if self._main not in (here, self.ident) and len(self.others) < MOST:
            self.others.add(here)
        return False

    def _follow(self, ident: int) -> None:
        self._tries = 0
        self.others.discard(ident)
        self.ident = ident
        self._tracker.follow(ident)


def _is_pythons(ident: int) -> bool:
    thread = live_threads.get(ident)
    return thread is not None and not isinstance(thread, threading._DummyThread)
