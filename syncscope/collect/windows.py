"""Windows of consecutive steps of one phase, after warm-up: bare, then recorded.

Each window is a generator that every step boundary resumes, so it reads in the order in which things happen. Closing
it early, because the program ended, left the phase or started its own profiler, runs its ``finally`` clauses and keeps
whole steps.
"""

from __future__ import annotations

import inspect
import os
import threading
import time
from collections.abc import Callable, Generator
from functools import partial
from typing import Any

from syncscope.collect.bare.moments import HostMoments
from syncscope.collect.bare.steps import COMPILATION, PROFILED
from syncscope.collect.bare.window import BareWindow
from syncscope.collect.clocks import ClockWatch
from syncscope.collect.device import captures_graph, native_sync
from syncscope.collect.features import Unsupported
from syncscope.collect.hazards.window import HazardWindow
from syncscope.collect.phases.signals import Signals
from syncscope.collect.plan import Plan
from syncscope.collect.profiler import KinetoWindow
from syncscope.collect.ready_ranks import PATIENCE_S, ReadyRanks
from syncscope.collect.recorded import Census, NoCensus, Recorded, Window
from syncscope.collect.relatives import several_ranks
from syncscope.collect.settling import LONG, Steps, go_on_together, has_long_step, pass_settling_steps
from syncscope.collect.sites.recorder import SiteRecorder
from syncscope.collect.sites.sampler import HostSampler
from syncscope.collect.sites.stacks import Stacks
from syncscope.collect.sites.sync_debug import sync_debug_mode
from syncscope.collect.sites.threads import Threads, live_threads
from syncscope.collect.undisturbed import undisturbed
from syncscope.schema.recording import SiteEvent

SETTLE = 0.002
"""Seconds that other threads get to return from their waits after the sync at the end of a window."""

PATIENT = 3
"""After this many interruptions a window accepts fewer steps, and lets no others pass before them, ..."""

TOLERANT = 6
"""... and after this many it goes on through them: the program never makes enough steps in a row."""

RECORDED_ANEW = 3
"""How often a window is recorded again because something was compiled in it, or one step was far longer than the
others: those are not the steady step."""


class Windows:
    """Runs the windows of one phase, and then ``on_finish``. ``signals`` and ``clocks`` tell of the host's work and of
    the GPU while they run, ``compilations()`` how often something was compiled so far.

    ``boundary`` is called between the steps of the phase. ``interrupt`` is called when the program leaves it in the
    middle of a step: a recorded window then ends, and begins again later unless it has most of its steps. So it does at
    a long step from one time of the loop to the next.
    """

    def __init__(
        self,
        plan: Plan,
        torch: Any,
        stacks: Stacks,
        threads: Threads,
        on_finish: Callable[[Windows], None],
        *,
        sync: Callable[[], None] | None = None,
        census: Census | None = None,
        signals: Signals | None = None,
        clocks: ClockWatch | None = None,
        compilations: Callable[[], int] = lambda: 0,
        ready_ranks: ReadyRanks | None = None,
        name: str = "",
        patience_s: float = PATIENCE_S,
    ) -> None:
        self.plan = plan
        self.recorded = Recorded()
        self._stacks = stacks
        self._threads = threads
        self._torch = torch
        # Taken before anything is wrapped, so that our own waits are not recorded.
        self._sync = sync or native_sync(torch)
        self._census: Census = census or NoCensus()
        self._clocks = clocks
        self._compilations = compilations
        self._compiled = compilations()
        self._recorded_anew = 0
        self._uneven = False
        """One of the recorded steps was far longer than the others."""
        self._ready_ranks = ready_ranks
        self._name = name
        self._patience_s = patience_s
        """For how long other ranks are awaited."""
        self._gathered = 0
        self._host = HostMoments(torch, stacks, signals)
        self._spans: dict[str, tuple[int, int]] = {}
        """Begin and end of each window, with the steps that warm up the profiler, Unix time in ns."""
        self._clock_s = 0.0
        self._on_finish = on_finish
        self._pid = os.getpid()
        self._count = 0
        self._step_began_ns = 0
        self._intruder: str | None = None
        self._filter_held = False
        self._thread: int | None = None
        self._interrupted = 0
        self._open = self._racing = False
        self._detaches = True
        self.gave_way = False
        """The program started a profiler of its own, and the windows ended there."""
        self._enough: Callable[[], bool] = lambda: True
        self._stages = self._plan_stages()
        self._stage: Steps | None = None

    @property
    def finished(self) -> bool:
        return not self._stages

    @property
    def recording(self) -> bool:
        """Whether a window is open in which the program runs under a profiler."""
        return self._open

    @property
    def occupied(self) -> bool:
        """Whether a window is open beside which no other phase can be recorded."""
        return self._open or self._racing

    def boundary(self, number: int | None = None, *, intruder: str | None = None, began_anew: bool = False) -> None:
        """A step ended, the phase's ``number``-th, in which a phase of the kind ``intruder`` may have come, or the loop
        of the phase may have ended and begun anew.

        Ignored in forked children, on other threads, after the windows, and while the program captures a CUDA graph: a
        wait of ours would end that.
        """
        if self.finished or os.getpid() != self._pid or captures_graph(self._torch):
            return
        if self._thread is None or self._thread not in live_threads:  # a program may train on a new one each epoch
            self._thread = threading.get_ident()
        elif self._thread != threading.get_ident():
            return
        self._count = self._count + 1 if number is None else number
        self._intruder = intruder
        now = time.perf_counter_ns()
        took, self._step_began_ns = now - self._step_began_ns, now
        if began_anew and took > LONG * self.recorded.usual_step_ns > 0 and not several_ranks(self._torch):
            self.interrupt()  # ranks all record the same steps, whichever of them is late
            if self.finished:
                return
        try:
            self._go_on()
        except Exception as error:
            # An error of the profiler or of ours: the program goes on unrecorded.
            self._give_up(error)
        except BaseException as error:  # Ctrl-C while we were at work: the program's to handle
            self._give_up(error)
            raise

    def interrupt(self) -> None:
        """The program left the phase within a step."""
        if not self.recording or os.getpid() != self._pid or self._thread != threading.get_ident():
            return
        if self._interrupted >= TOLERANT or self._at_work or captures_graph(self._torch):
            return
        self._interrupted += 1
        stage, self._stage = self._stage, None
        try:
            assert stage is not None
            stage.close()
        except Exception as error:
            self._give_up(error)
            return
        except BaseException as error:
            self._give_up(error)
            raise
        if self._enough():
            self._stages.pop(0)
        if self._stages:
            self._stages.insert(0, self._wait_for_cupti)
        else:
            self._finish()

    def close(self, note: str) -> None:
        """End the windows early and keep whole steps; ``note`` says why."""
        if self.finished or os.getpid() != self._pid:
            return
        self.recorded.notes.append(note)
        self._detaches = False  # it takes calls of CUDA that may not come: a process would not end
        try:
            if self._stage is not None and not self._at_work:  # else a signal's handler came into our work
                self._stage.close()
        except Exception as error:  # after an error of the device, say, every call of CUDA raises
            self._give_up(error)
        else:
            self._finish()

    def discard(self) -> None:
        """End the windows and forget them, without ``on_finish``."""
        self._on_finish = lambda _: None
        self.close("")

    @property
    def _at_work(self) -> bool:
        """Whether the stage itself runs now: it can be closed only while a step of the program runs."""
        return self._stage is not None and inspect.getgeneratorstate(self._stage) == inspect.GEN_RUNNING

    def _plan_stages(self) -> list[Callable[[], Steps]]:
        plan = self.plan
        if plan.repeats_bare:
            return [self._wait_for_cupti, self._bare_again]
        stages: list[Callable[[], Steps]] = [self._warm_up]
        if plan.bare:
            stages.append(self._bare)
        stages.append(self._wait_for_cupti)
        if plan.mode == "windows":
            last = plan.attribution < 1
            stages.append(partial(self._record, "timed", plan.steps, cpu=False, last=last))
            if not last:
                stages.append(partial(self._record, "attribution", plan.attribution, cpu=True))
        else:
            stages.append(partial(self._record, "timed", plan.steps, cpu=True))
        if plan.hazards:
            stages.append(partial(self._look_for_races, plan.hazards))
        return stages

    def _go_on(self) -> None:
        """Resume the stage, or begin the next one, until one lets a step of the program run."""
        while self._stages:
            if self._stage is None:
                self._stage = self._stages[0]()
            try:
                next(self._stage)
                return
            except StopIteration:
                self._stage = None
                self._stages.pop(0)
        self._finish()

    def _give_up(self, error: BaseException) -> None:
        """End the windows after an error, and keep those that are whole."""
        self.recorded.failure = f"Recording failed and was given up ({type(error).__name__}: {error})."
        if self._stages or self._stage is not None:
            self._finish()

    def _finish(self) -> None:
        self._stages, self._stage = [], None
        if self._clocks is not None:
            self.recorded.gpu = self._clocks.about(self._spans.get("bare"), self._spans.get("timed"))
        try:
            self._on_finish(self)
        finally:
            if self._filter_held:
                sync_debug_mode.release_filter()
                self._filter_held = False

    def _warm_up(self) -> Steps:
        """Let steps pass, and more until CUDA is in use and no other profiler runs."""
        if self._clocks is not None and self._torch.cuda.is_initialized():
            self._clocks.open(self._torch)
        self._host.open(stamps=False)  # to know the loader when the first bare step comes
        try:
            for _ in range(self.plan.warmup):
                yield
            while not self._torch.cuda.is_initialized() or self._torch._C._autograd._profiler_enabled():
                yield
        finally:
            self._host.close()
        self.recorded.tid = self._threads.current()

    def _bare(self) -> Steps:
        """Time steps with no profiler."""
        window = self._bare_window()
        settle = 0 if several_ranks(self._torch) else self.plan.settle
        self.recorded.bare = yield from window.before(self.plan.bare, settle=settle)
        self._spans["bare"], self._clock_s = window.span_ns, window.clock_s

    def _bare_again(self) -> Steps:
        """Time steps until their median is known, after the windows, where nobody needs the steps for anything else."""
        window, plan = self._bare_window(), self.plan
        self.recorded.bare = yield from window.after(plan.bare, seconds=plan.bare_seconds, settle=plan.settle)
        self._spans["bare"] = window.span_ns

    def _bare_window(self) -> BareWindow:
        return BareWindow(self._sync, self._host, self._came_between, self._clocks)

    def _came_between(self) -> str | None:
        """What came into the step that has just ended."""
        before, self._compiled = self._compiled, self._compilations()
        if self._torch._C._autograd._profiler_enabled():
            return PROFILED
        compiled = self._compiled > before and not several_ranks(self._torch)
        return COMPILATION if compiled else self._intruder

    def _wait_for_cupti(self) -> Steps:
        """Let steps pass until the profiler of an earlier window has detached: a new one would record nothing. Several
        ranks then go on at the same step, whichever of them was late. The first window of a rank does not wait, and is
        not awaited."""
        first = not KinetoWindow.ready_at
        while time.monotonic() < KinetoWindow.ready_at:
            yield
        if not several_ranks(self._torch):
            return
        self._gathered += 1
        what = f"{self._name}.{self._gathered}"
        if not first:
            yield from go_on_together(
                self._ready_ranks, what, lambda: self._count, self.recorded.usual_step_ns, self._patience_s
            )
        elif self._ready_ranks is not None:
            self._ready_ranks.come(what, self._count)

    def _record(self, name: str, steps: int, *, cpu: bool, last: bool = True) -> Steps:
        """Record ``steps`` steps as ``recorded.<name>``, after some that warm up the profiler and hooks."""
        profiler = KinetoWindow(self._torch, cpu=cpu, on_foreign=self._foreign_profiler)
        sites = SiteRecorder(self._torch, self._stacks, self._threads, hears_copies=name == "attribution")
        sampler, boundaries = HostSampler(self._stacks), list[int]()
        warming, warmed, first = [time.time_ns()], list[SiteEvent](), self._count
        self._enough = lambda: False
        self._open = True
        try:
            self._hold_filter()
            self._census.suspend()
            profiler.prepare()
            sites.open()
            self._note_missing(sites.missing)
            yield
            if name == "timed" and self._interrupted < PATIENT:
                yield from pass_settling_steps(
                    self._torch, self.recorded, self.plan.settle, self._clock_s, first, warming, uneven=self._uneven
                )
            warmed += sites.take()
            first = self._count
            # From an idle device to an idle device, like the bare window.
            self._sync()
            profiler.start()
            boundaries.append(time.time_ns())
            compiled = self._compilations()
            with sampler.sampling(self._thread or 0, self.recorded.usual_step_ns if name == "timed" else 0):
                yield from self._pass_steps(profiler, range(first, first + steps), boundaries)
            if name == "timed" and (self._compilations() > compiled or self._is_uneven(boundaries)):
                self._record_again(name, steps, cpu=cpu, last=last)
        finally:
            # Also runs when the generator is closed in the middle of a step: whole steps are kept.
            try:
                detach = self._detaches and (last or len(boundaries) <= steps)
                exported, drained = self._end(profiler, sites, detach=detach)
                self._census.add_window((*warmed, *(events := sites.take())), (*warming, *boundaries))
            finally:
                self._open = False
                self._census.resume()
            if exported is not None and len(boundaries) > 1:
                self._spans[name] = [*warming, *boundaries][1], boundaries[-1]
                setattr(
                    self.recorded, name, Window(exported, tuple(boundaries), drained, first, events, sampler.take())
                )
                self._enough = partial(self._suffices, len(boundaries) - 1, steps)

    @staticmethod
    def _pass_steps(profiler: KinetoWindow, numbers: range, boundaries: list[int]) -> Steps:
        """Let the steps of a window pass, and append the end of each to ``boundaries``."""
        for number in numbers:
            with profiler.step(number):
                yield
            boundaries.append(time.time_ns())

    def _is_uneven(self, boundaries: list[int]) -> bool:
        """Whether steps have just turned out to be uneven: the next window begins after a long one."""
        if self._uneven or not self.plan.settle:  # a short window has no time for another
            return False
        self._uneven = has_long_step(self.recorded, boundaries)
        return self._uneven

    def _record_again(self, name: str, steps: int, *, cpu: bool, last: bool) -> None:
        """Put the same window behind the one that is open. What this one recorded stays until then. Ranks all record
        the same steps, whichever of them compiles."""
        if self._recorded_anew < RECORDED_ANEW and not several_ranks(self._torch):
            self._recorded_anew += 1
            self._stages[1:1] = [self._wait_for_cupti, partial(self._record, name, steps, cpu=cpu, last=last)]

    def _suffices(self, recorded: int, wanted: int) -> bool:
        """Whether a window with this many ``recorded`` steps need not be recorded again."""
        return recorded >= (1 if self._interrupted >= PATIENT else (wanted + 1) // 2)

    def _end(self, profiler: KinetoWindow, sites: SiteRecorder, *, detach: bool) -> tuple[bytes | None, int]:
        """End a window. Returns the trace, if there is one, and when the device had done its work.

        The sync comes before the hooks go, so that waits still under way on other threads are recorded too.
        """
        with undisturbed():
            try:
                self._sync()
                drained = time.time_ns()
                time.sleep(SETTLE)
            finally:  # where the device has failed too, nothing of ours stays behind
                try:
                    sites.close()
                finally:
                    exported = profiler.stop(detach=detach)
        return exported, drained

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

    def _look_for_races(self, steps: int) -> Generator[None, None, None]:
        """Follow host memory and streams for ``steps`` steps. This is slow, so nothing is timed here."""
        try:
            hazards = HazardWindow(self._torch, self._stacks, self._threads)
        except Unsupported as error:
            self.recorded.notes.append(f"This recording {error}.")
            return
        self._sync()
        hazards.open()
        self._racing = True
        try:
            for _ in range(steps):
                yield
                self.recorded.hazard_steps += 1
        finally:
            self._racing = False
            hazards.close()
            self.recorded.hazards = hazards.take()
            self.recorded.notes += hazards.notes

    def _foreign_profiler(self) -> None:
        self.gave_way = True
        self.close("The program started a profiler of its own: these windows end there.")
