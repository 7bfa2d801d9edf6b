"""Records single steps with PyTorch's ops on, between windows."""

from __future__ import annotations

import os
import threading
import time
from collections import Counter
from collections.abc import Callable
from typing import Any

from syncscope.collect.looks.behind import find_ops
from syncscope.collect.looks.wanted import STEPLESS, Wanted
from syncscope.collect.phases.phase import Phase
from syncscope.collect.profiler import KinetoWindow
from syncscope.collect.recorded import Census
from syncscope.collect.sites.recorder import SiteRecorder
from syncscope.collect.sites.stacks import Stacks
from syncscope.collect.sites.sync_debug import sync_debug_mode
from syncscope.collect.sites.threads import Threads
from syncscope.collect.undisturbed import undisturbed
from syncscope.schema.recording import Attributed, SiteEvent

MOST_LOOKS = 4
"""Steps of a phase that are looked at, at most."""


class Looks:
    """Looks at the steps that are ``wanted``, one at a time and on one thread. What it found is in ``found``.

    It begins and ends between two steps of a phase, or with a phase that has none. ``census(phase)`` counts meanwhile
    as beside a window. An error of ours ends all looks, and the program goes on.
    """

    def __init__(self, torch: Any, stacks: Stacks, threads: Threads, census: Callable[[Phase], Census]) -> None:
        self.found: dict[tuple[int, int], Attributed] = {}
        """By stack and ordinal in the step."""
        self.tried: Counter[int] = Counter()
        """Looks at each phase, by its number."""
        self.failure = ""
        self._torch = torch
        self._stacks = stacks
        self._threads = threads
        self._census_of = census
        self._wanted: Wanted = {}
        self._phase: Phase | None = None
        self._begun: tuple[KinetoWindow, SiteRecorder, Census, int] | None = None
        self._thread = 0
        self._pid = os.getpid()

    @property
    def open(self) -> bool:
        return self._begun is not None

    def wants(self, phase: Phase) -> bool:
        """Whether a step is being looked at, or one of ``phase`` is to be."""
        return self._begun is not None or phase.number in self._wanted

    def want(self, wanted: Wanted) -> None:
        """Look at these steps, by phase, and no others. From any thread."""
        self._wanted = wanted

    def begin(self, phase: Phase) -> None:
        """A step of ``phase`` begins, or a phase without steps. Does nothing where it is not wanted."""
        wanted = self._wanted.get(phase.number) if self._wanted else None
        if wanted is None or self._begun is not None:
            return
        if phase.kind not in STEPLESS and not any(one.holds(phase.steps) for one in wanted):
            return
        if os.getpid() != self._pid or self.failure or not self._may_profile():
            return
        self._wanted = {number: one for number, one in self._wanted.items() if number != phase.number}
        self.tried[phase.number] += 1
        profiler = KinetoWindow(self._torch, cpu=True, cuda=False, on_foreign=self.end)
        sites = SiteRecorder(self._torch, self._stacks, self._threads, hears_copies=True)
        census = self._census_of(phase)
        self._thread, self._phase = threading.get_ident(), phase
        self._begun = profiler, sites, census, time.time_ns()
        try:
            with undisturbed():
                sync_debug_mode.hold_filter()
                census.suspend()
                sites.open()
                profiler.prepare()
                profiler.start()
        except Exception as error:
            self._fail(error)
            self.end()

    def end(self, stepped: Phase | None = None) -> None:
        """The step that is being looked at is over: ``stepped``, or left. Does nothing where none is, or on another
        thread."""
        if self._begun is None or threading.get_ident() != self._thread or os.getpid() != self._pid:
            return
        (profiler, sites, census, began), self._begun = self._begun, None
        exported: bytes | None = None
        events: tuple[SiteEvent, ...] = ()
        try:
            with undisturbed():
                try:
                    sites.close()
                    events = sites.take()
                finally:
                    exported = profiler.stop(detach=False)
        except Exception as error:
            self._fail(error)
        finally:
            whole = stepped is not None and stepped is self._phase
            census.add_window(events, (began, time.time_ns()) if whole else (began,))
            census.resume()
            sync_debug_mode.release_filter()
        if exported is not None:
            try:
                for one in find_ops(exported, events, self._threads.aliases):
                    self.found.setdefault((one.stack, one.ordinal), one)
            except Exception as error:
                self._fail(error)

    def _may_profile(self) -> bool:
        """Whether a profiler may start now. Kineto that has never had CUPTI would do without it for good."""
        detached = time.monotonic() >= KinetoWindow.ready_at
        return KinetoWindow.had_cupti and detached and not self._torch._C._autograd._profiler_enabled()

    def _fail(self, error: Exception) -> None:
        self.failure = self.failure or f"The ops of some lines could not be told ({type(error).__name__}: {error})."
