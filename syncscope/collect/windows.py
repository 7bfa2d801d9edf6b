"""Windows of consecutive steps after warm-up: bare, then recorded.

The schedule is a generator that every step boundary resumes, so it reads in the order in which things happen. Closing
it early, because the program ended or started its own profiler, runs its ``finally`` clauses and keeps whole steps.
"""

from __future__ import annotations

import itertools
import os
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, Literal

from syncscope.collect.features import Unsupported
from syncscope.collect.hazards.window import HazardWindow
from syncscope.collect.profiler import KinetoWindow
from syncscope.collect.sites.recorder import SiteRecorder
from syncscope.collect.sites.stacks import Stacks
from syncscope.collect.sites.sync_debug import sync_debug_mode
from syncscope.collect.sites.threads import Threads
from syncscope.collect.undisturbed import undisturbed
from syncscope.schema.recording import Bare, HazardEvent, SiteEvent

Mode = Literal["windows", "full"]

SETTLE = 0.002
"""Seconds that other threads get to return from their waits after the sync at the end of a window."""


@dataclass(frozen=True)
class Plan:
    """How many steps each window takes."""

    warmup: int = 5
    bare: int = 10
    steps: int = 5
    attribution: int = 3
    """Steps of the attribution window; only in mode ``windows``."""
    mode: Mode = "windows"
    hazards: int = 0
    """Steps of a window that looks for races; 0 for none. It comes last because it is slow."""
    stop: bool = False
    """End the program after the windows."""
    begin_at: int = 0
    """Steps before the first of ``warmup``."""


@dataclass
class Window:
    """One recorded window."""

    exported: bytes
    """The chrome trace as torch wrote it."""
    boundaries_ns: tuple[int, ...]
    drained_ns: int
    """When the device had finished the last step's work."""
    first_step: int
    sites: tuple[SiteEvent, ...]


@dataclass
class Recorded:
    """What the windows of one process recorded."""

    bare: Bare | None = None
    timed: Window | None = None
    attribution: Window | None = None
    hazards: tuple[HazardEvent, ...] | None = None
    hazard_steps: int = 0
    tid: int = 0
    failure: str | None = None
    """Why recording stopped with an error."""
    notes: list[str] = field(default_factory=list)


class StopProgram(SystemExit):
    """Raised at the step boundary after the windows, where the user asked to end the program there."""


class Windows:
    """Runs the windows of one process, and then ``on_finish``. ``boundary`` is called between the program's steps."""

    def __init__(self, plan: Plan, torch: Any, stacks: Stacks, on_finish: Callable[[], None]) -> None:
        self.plan = plan
        self.recorded = Recorded()
        self.stacks = stacks
        self.threads = Threads()
        self._torch = torch
        self._sync: Callable[[], None] = lambda: None
        self._on_finish = on_finish
        self._pid = os.getpid()
        self._count = 0
        self._recording = False
        self._filter_held = False
        self._thread: int | None = None
        self._schedule: Iterator[None] | None = self._run()
        next(self._schedule)

    @property
    def finished(self) -> bool:
        return self._schedule is None

    def boundary(self) -> None:
        """A step ended. Ignored in forked children, on other threads, and after the windows."""
        if self._schedule is None or os.getpid() != self._pid:
            return
        if self._thread is None:
            self._thread = threading.get_ident()
        elif self._thread != threading.get_ident():
            return
        self._count += 1
        try:
            next(self._schedule)
        except StopIteration:
            self._finish()
            if self.plan.stop:
                raise StopProgram(0) from None
        except Exception as error:
            # An error of the profiler or of ours: the program goes on unrecorded.
            self._give_up(error)
        except BaseException as error:  # Ctrl-C while we were at work: the program's to handle
            self._give_up(error)
            raise

    def restart(self) -> bool:
        """Begin again because a better source of steps was found. Refused, with ``False``, once a window records."""
        if self._schedule is None or self._recording:
            return False
        self._schedule.close()  # type: ignore[attr-defined]
        self.recorded, self._count = Recorded(), 0
        self._schedule = self._run()
        next(self._schedule)
        return True

    def close(self, note: str) -> None:
        """End the windows early and keep whole steps; ``note`` says why."""
        if self._schedule is not None and os.getpid() == self._pid:
            self.recorded.notes.append(note)
            try:
                self._schedule.close()  # type: ignore[attr-defined]
            except Exception as error:  # after an error of the device, say, every call of CUDA raises
                self._give_up(error)
            else:
                self._finish()

    def _give_up(self, error: BaseException) -> None:
        """End the windows after an error, and keep those that are whole."""
        self.recorded.failure = f"Recording failed and was given up ({type(error).__name__}: {error})."
        if self._schedule is not None:
            self._finish()

    def _finish(self) -> None:
        self._schedule = None
        try:
            self._on_finish()
        finally:
            if self._filter_held:
                sync_debug_mode.release_filter()

    def _run(self) -> Iterator[None]:
        """The schedule: each ``yield`` lets one step of the program run."""
        yield
        for _ in range(self.plan.begin_at + self.plan.warmup):
            yield
        while not self._ready():
            yield
        # Taken before anything is wrapped, so that our own waits are not recorded.
        self._sync = self._torch._C._cuda_synchronize
        self.recorded.tid = self.threads.current()
        yield from self._bare()
        if self.plan.mode == "windows":
            yield from self._record("timed", self.plan.steps, cpu=False, last=self.plan.attribution < 1)
            yield from self._record("attribution", self.plan.attribution, cpu=True)
        else:
            yield from self._record("timed", self.plan.steps, cpu=True)
        if self.plan.hazards:
            yield from self._look_for_races(self.plan.hazards)

    def _ready(self) -> bool:
        """Whether CUDA is in use and no other profiler runs."""
        return self._torch.cuda.is_initialized() and not self._torch._C._autograd._profiler_enabled()

    def _bare(self) -> Iterator[None]:
        """Time steps with nothing switched on, between two device syncs."""
        if self.plan.bare < 1:
            return
        sync, now = self._sync, time.perf_counter_ns
        sync()
        times = [now()]
        for _ in range(self.plan.bare - 1):
            yield
            times.append(now())
        yield
        sync()
        times.append(now())
        lengths = tuple(after - before for before, after in itertools.pairwise(times))
        self.recorded.bare = Bare(steps_ns=lengths)

    def _record(self, name: str, steps: int, *, cpu: bool, last: bool = True) -> Iterator[None]:
        """Record ``steps`` steps as ``recorded.<name>``, after one step that only warms up the profiler and hooks."""
        if steps < 1:
            return
        profiler = KinetoWindow(self._torch, cpu=cpu, on_foreign=self._foreign_profiler, last=last)
        sites = SiteRecorder(self._torch, self.stacks, self.threads)
        boundaries: list[int] = []
        first, exported = self._count, None
        self._recording = True
        try:
            self._hold_filter()
            profiler.prepare()
            sites.open()
            self._note_missing(sites.missing)
            yield
            sites.take()
            first = self._count
            # From an idle device to an idle device, like the bare window.
            self._sync()
            profiler.start()
            boundaries.append(time.time_ns())
            for number in range(steps):
                with profiler.step(first + number):
                    yield
                boundaries.append(time.time_ns())
        finally:
            # Also runs when the generator is closed in the middle of a step: whole steps are kept. The sync comes
            # before the hooks go, so that waits still under way on other threads are recorded too.
            with undisturbed():
                try:
                    self._sync()
                    drained = time.time_ns()
                    time.sleep(SETTLE)
                finally:  # where the device has failed too, nothing of ours stays behind
                    try:
                        sites.close()
                    finally:
                        self._recording = False
                        exported = profiler.stop()
            if exported is not None and len(boundaries) > 1:
                window = Window(exported, tuple(boundaries), drained, first, sites.take())
                setattr(self.recorded, name, window)

    def _hold_filter(self) -> None:
        """From now on no warning that we cause reaches the user."""
        if not self._filter_held:
            sync_debug_mode.hold_filter()
            self._filter_held = True

    def _note_missing(self, attributes: tuple[str, ...]) -> None:
        for name in attributes:
            note = f"PyTorch lacks {name}: calls of it have no line of their own."
            if note not in self.recorded.notes:
                self.recorded.notes.append(note)

    def _look_for_races(self, steps: int) -> Iterator[None]:
        """Follow host memory and streams for ``steps`` steps. This is slow, so nothing is timed here."""
        try:
            hazards = HazardWindow(self._torch, self.stacks, self.threads)
        except Unsupported as error:
            self.recorded.notes.append(f"This recording {error}.")
            return
        self._sync()
        hazards.open()
        try:
            for _ in range(steps):
                yield
                self.recorded.hazard_steps += 1
        finally:
            hazards.close()
            self.recorded.hazards = hazards.take()
            self.recorded.notes += hazards.notes

    def _foreign_profiler(self) -> None:
        self.close("The program started a profiler of its own: the recording ends there.")
