"""The count of the whole run of this process, as ``profile`` and ``watch`` share it."""

from __future__ import annotations

import contextlib
import os
import platform
import sys
import time
import weakref
from collections.abc import Callable
from types import FrameType
from typing import Any, TypeVar

from msgspec import structs

from syncscope import __version__
from syncscope.collect.background import Background
from syncscope.collect.compiling.watch import CompileWatch
from syncscope.collect.count.counter import Counter
from syncscope.collect.environment import VARIABLE
from syncscope.collect.gpu import copy_engines
from syncscope.collect.nvml import PATIENCE_S, DeviceWatch
from syncscope.collect.paths import Paths
from syncscope.collect.phases.book import Listener
from syncscope.collect.phases.lines import PhaseLines
from syncscope.collect.phases.phase import Phase
from syncscope.collect.phases.signals import Signals
from syncscope.collect.phases.tracker import PhaseTracker
from syncscope.collect.process_age import process_age_ns
from syncscope.collect.sites.sources import Sources
from syncscope.collect.sites.stacks import Stacks
from syncscope.collect.sites.threads import Threads
from syncscope.schema.counting import RecordedRun
from syncscope.schema.recording import FORMAT, RecordedSteps, Recording

STATE_SECONDS = 2.0
LONGEST_STATE_SECONDS = 8.0
STATE_SHARE = 0.001
"""States are written to disk every ``STATE_SECONDS``, or less often, so that they take this share of a processor. No
two are further apart than ``LONGEST_STATE_SECONDS``, less the time to write one: with a tick in between, the state on
disk is at most 10 s old, unless writing takes longer than 4 s. A state takes 15 ms with as many places as are kept, and
the time to copy what windows recorded."""
TICK_SECONDS = 0.5
LONGEST_TICK_SECONDS = 1.0
"""Between two ticks, however much of the time they take."""
SHARING_NS = 10_000_000_000
"""So often it is asked who else uses the GPU, which takes half a millisecond of another thread."""
LONG_NS = 5_000_000_000
"""A run that used CUDA for so long and has no steps says why."""
MOST_SHARE = 0.002
"""Of the time may go into ticks, and as much into what is said meanwhile."""

Value = TypeVar("Value")


class RunCount:
    """Counts this process from its first use of CUDA on.

    ``count=False`` tells phases and steps apart, and counts no wait. ``by_time`` follows no steps: ``end_stretch`` ends
    them. ``write()`` is called every few seconds, on a thread of ours, to keep what was counted so far. In
    a forked child nothing is counted or written. It passes on what the phase tracker says to ``listener``.
    """

    def __init__(
        self,
        paths: Paths,
        run_id: str,
        write: Callable[[], None],
        *,
        count: bool = True,
        source: bool = True,
        by_time: bool = False,
    ) -> None:
        self.notes: list[str] = []
        self.listener: Listener | None = None
        """Hears of steps and phases after the counter has."""
        self.sharing = DeviceWatch((VARIABLE,))
        self.before_step: Callable[[], object] = lambda: None
        self.on_tick: Callable[[], object] = lambda: None
        """Called twice a second, on the thread that writes."""
        self.stacks = Stacks(paths)
        self.threads = Threads()
        self.counter: Counter | None = None
        """``None`` before the program uses CUDA, and where waits are not counted."""
        self.tracker: PhaseTracker | None = None
        self.step: Callable[[], None] = _nothing
        """The program says that a step ended."""
        self.compiling = CompileWatch(self.stacks, self.threads, self._phase_at)
        """What ``torch.compile`` does. It is followed also where waits are not counted."""
        self._paths = paths
        self._write = write
        self.run_id = run_id
        self._count = count
        self._by_time = by_time
        self._keep_source = source
        self._torch: Any = None
        self.signals: Signals | None = None
        self._device: tuple[str, int | None] | None = None
        self._started_ns = self._began_ns = self._written_ns = self._shared_ns = 0
        self._ended_ns: int | None = None
        self._pid = os.getpid()
        self._forked = False
        """This is a child that the program forked. Asking for the process's number costs a call of the system."""
        self._writing_ns = self._writing_cpu_ns = 0
        """What the last state took, in all and of a processor."""
        self._sources = Sources(self.stacks)
        self._lines: PhaseLines | None = None
        self._background = Background(TICK_SECONDS, self._tick, MOST_SHARE, LONGEST_TICK_SECONDS)

    @property
    def began(self) -> bool:
        """Whether the program has used CUDA."""
        return self._began_ns > 0

    @property
    def overhead_share(self) -> float | None:
        """What counting cost so far, by its own measure, as a share of the time."""
        if self.counter is None:
            return None
        return (self.counter.overhead_share or 0.0) + self._background.busy_ns / max(self._time_ns(), 1)

    def open(self, torch: Any) -> None:
        """Count from the first use of CUDA on, or from now on where the program has used it."""
        self._torch = torch
        try:
            # PyTorch holds a lock while it initialises, for which ``_lazy_call`` would wait.
            if getattr(torch.cuda._tls, "is_initializing", False):
                self._begin()
            else:
                torch.cuda._lazy_call(self._begin)
        except AttributeError as error:
            self.notes.append(f"Waits cannot be counted in this PyTorch ({error}).")

    def close(self) -> None:
        """Remove every hook. Does nothing in a forked child, and the second time."""
        if os.getpid() != self._pid or self._ended_ns is not None:
            return
        self._ended_ns = time.perf_counter_ns()
        self.step = _nothing
        if not self.began:
            return
        parts = (
            self._settle, self._end_compiling, self._detach_counter, self._detach_signals, self._background.close,
            self._leave_device,
        )  # fmt: skip
        for part in parts:
            try:
                part()
            except Exception as error:  # the others all the same
                self.notes.append(f"Not all could be ended as planned ({type(error).__name__}: {error}).")

    def end_stretch(self) -> None:
        """A stretch of time is over, where steps are recorded by time."""
        if self.signals is not None and self._ended_ns is None:
            self.signals.tick()

    @property
    def training_may_come(self) -> bool:
        """Whether the program has made an optimiser."""
        return self.signals is not None and self.signals.optimizers_made

    def recorded_run(self, *, complete: bool = False) -> RecordedRun:
        """What was counted so far. ``stack`` of a wait is an index into what ``stacks.resolve()`` returns then."""
        counter, tracker = self.counter, self.tracker
        phases = tracker.recorded(self._ended_ns) if tracker is not None else ()
        if counter is not None and tracker is not None:
            phases = tuple(
                structs.replace(recorded, counted_steps=counter.counted_steps(phase), one_in=counter.one_in(phase))
                for recorded, phase in zip(phases, tracker.phases, strict=False)
            )
        if self._lines is not None:
            phases = self._lines.added_to(phases)
        return RecordedRun(
            id=self.run_id,
            started_ns=self._started_ns,
            time_ns=self._time_ns(),
            complete=complete,
            counted=counter is not None,
            phases=phases,
            waits=counter.waits() if counter is not None else (),
            bins=counter.bins if counter is not None else (),
            overhead_share=self.overhead_share,
            dropped=counter.dropped if counter is not None else 0,
            processes_on_device=self.sharing.others,
            compiled=self.compiling.recorded() if self.began else None,
        )

    def recording(self, *, complete: bool = False) -> Recording:
        """The recording of a process in which no window was recorded, without its rank."""
        run = consistent(lambda: self.recorded_run(complete=complete))
        frames, stacks = self.stacks.resolve()
        device, engines = self._device or self._about_device()
        return Recording(
            format=FORMAT,
            version=__version__,
            torch=str(self._torch.__version__),
            python=platform.python_version(),
            device=device,
            copy_engines=engines,
            pid=self._pid,
            steps=RecordedSteps(source="none"),
            thread_names=self.threads.names(),
            thread_aliases=self.threads.aliases,
            frames=frames,
            stacks=stacks,
            launch_blocking=os.environ.get("CUDA_LAUNCH_BLOCKING") == "1",
            files=self._paths.own_files(),
            sources=self._sources.of(frames) if self._keep_source else {},
            notes=tuple(self.notes),
            run=run,
        )

    def stepped(self, phase: Phase) -> int:
        if self._forked:
            return 0
        self.before_step()
        if self._device is None:  # on the program's own thread, which has chosen its device
            self._device = self._about_device()
            self.sharing.open(self._torch)
        unheard = self.counter.stepped(phase) if self.counter is not None else sys.maxsize
        if self.listener is not None:
            unheard = min(unheard, self.listener.stepped(phase))
        return unheard

    def changed(self, before: Phase, after: Phase) -> None:
        if self._forked:
            return
        if self.counter is not None:
            self.counter.changed(before, after)
        if self.listener is not None:
            self.listener.changed(before, after)

    def folded(self, phase: Phase, into: Phase) -> None:
        if self._forked:
            return
        self.compiling.log.folded(phase, into)
        if self.counter is not None:
            self.counter.folded(phase, into)
        if self.listener is not None:
            self.listener.folded(phase, into)

    def better_source(self, phase: Phase) -> None:
        if self._forked:
            return
        if self.listener is not None:
            self.listener.better_source(phase)  # first: a window that ends hands over what it counted
        self.compiling.log.begin_again(phase)
        if self.counter is not None:
            self.counter.begin_again(phase)

    def _begin(self) -> None:
        """The program uses CUDA now. Nothing may leave here: PyTorch would fail to initialise CUDA."""
        if os.getpid() != self._pid or self.began or self._ended_ns is not None:
            return
        try:
            self._started_ns, self._began_ns = time.time_ns(), time.perf_counter_ns()
            self.tracker = PhaseTracker(self, self._paths)
            self.signals = Signals(self.tracker)
            self._lines = PhaseLines(self.tracker, self.stacks)
            self.step = self.signals.user_step  # itself: a short step would pay for a call in between
            if not self._by_time:
                self.signals.attach(self._torch)
            if self._count:
                before_ns = process_age_ns()
                counter = Counter(self._torch, self.stacks, self.threads, self.tracker, before_ns=before_ns)
                counter.tally.compiling = self.compiling.is_at_work
                self.compiling.at_work = counter.compiles
                counter.open()
                self.counter = counter
                self.signals.hear_waits(lambda: counter.tally.warned.count)
            self.compiling.open(self._torch)
        except Exception as error:
            self.notes.append(f"The run is not counted ({type(error).__name__}: {error}).")
        _leave_forked_children(self)
        self._written_ns = self._began_ns
        try:
            self._background.open()
        except RuntimeError as error:
            self.notes.append(f"Nothing was written before the end of the program ({error}).")

    def _tick(self) -> None:
        if self._ended_ns is not None or not self.began:
            return
        if self._lines is not None:
            self._lines.look()
        if self.counter is not None:
            self.counter.tick()
        if self.signals is not None:
            self.signals.look_wider()
            self.signals.look_for_loops()
        self.on_tick()
        self.stacks.resolve()  # what is new since the last time, so that a state need not wait for all of it
        now = time.perf_counter_ns()
        if now - self._shared_ns > SHARING_NS:
            self._shared_ns = now
            self.sharing.sample_meanwhile()
        if now - self._written_ns > _between_states_ns(self._writing_ns, self._writing_cpu_ns):
            self._written_ns, spent = now, time.thread_time_ns()
            self._write()
            self._writing_ns = time.perf_counter_ns() - now
            self._writing_cpu_ns = time.thread_time_ns() - spent

    def _settle(self) -> None:
        if self.tracker is not None:
            if self.tracker.unheard:
                self.tracker.hear()  # before the counter closes: they were counted
            self.tracker.settle(self._ended_ns)

    def _phase_at(self, frame: FrameType) -> Phase | None:
        return self.tracker.at(frame) if self.tracker is not None else None

    def _end_compiling(self) -> None:
        self.compiling.close()
        self.notes += [why for why in (self.compiling.failure, self.compiling.kernels.failure) if why]

    def _detach_counter(self) -> None:
        if self.counter is not None:
            self.counter.close()
            if self.counter.failure:
                self.notes.append(self.counter.failure)

    def _detach_signals(self) -> None:
        if self.signals is not None:  # after the counter: both replace the same methods of PyTorch
            self.signals.detach()
            waited = self.counter is not None and bool(self.counter.waits())
            long = self._time_ns() >= LONG_NS and not self._by_time
            without_steps = self.signals.note_without_steps if waited and long else None
            self.notes += [note for note in (self.signals.failure, self.signals.note, without_steps) if note]

    def _leave_device(self) -> None:
        if self._device is not None:
            self.sharing.sample()
        else:  # no step was seen
            self.sharing.open(self._torch, PATIENCE_S)
        self.sharing.close()

    def leave_forked_child(self) -> None:
        """Take the hooks out of a forked child."""
        self._forked = True
        if self._ended_ns is None and self.signals is not None:
            with contextlib.suppress(Exception):
                self.compiling.close()
                self.signals.detach()

    def _about_device(self) -> tuple[str, int | None]:
        """The name and the copy engines of the device that this thread has chosen."""
        try:
            device = self._torch.cuda.current_device()
            return self._torch.cuda.get_device_name(device), copy_engines(device)
        except Exception:  # the program may have replaced these functions
            return "", None

    def _time_ns(self) -> int:
        end = self._ended_ns if self._ended_ns is not None else time.perf_counter_ns()
        return end - self._began_ns if self.began else 0


def _between_states_ns(writing_ns: int, cpu_ns: int) -> float:
    """The time from the beginning of one state on disk to that of the next, where the last took ``writing_ns``, and
    ``cpu_ns`` of a processor: in a program of many threads it waits most of the time."""
    longest = LONGEST_STATE_SECONDS * 1e9 - writing_ns
    return min(max(STATE_SECONDS * 1e9, cpu_ns / STATE_SHARE), longest)


def _nothing() -> None:
    """What says that a step ended while none is followed."""


def consistent(read: Callable[[], Value], tries: int = 20) -> Value:
    """Read tables that the program's threads change meanwhile."""
    for _ in range(tries - 1):
        try:
            return read()
        except RuntimeError:  # a dictionary changed its size
            time.sleep(0)
    return read()


def _leave_forked_children(count: RunCount) -> None:
    """A hook on forks stays for the life of the process: it must not keep the count alive."""
    if not hasattr(os, "register_at_fork"):
        return
    known = weakref.ref(count)

    def leave() -> None:
        found = known()
        if found is not None:
            found.leave_forked_child()

    os.register_at_fork(after_in_child=leave)
