"""Which phase of the program gets windows, and when.

Training gets its windows whenever it comes. Another phase gets them once it has taken its share of the time. The first
windows of the program are short ones, so that a short program has some too; the plan's own replace them.
"""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from syncscope.collect.bare.steps import is_known
from syncscope.collect.clocks import ClockWatch
from syncscope.collect.count.counter import Counter
from syncscope.collect.looks.looks import Looks
from syncscope.collect.looks.wanted import STEPLESS
from syncscope.collect.phases.phase import Phase
from syncscope.collect.phases.places import function_of
from syncscope.collect.phases.signals import Signals
from syncscope.collect.plan import Plan
from syncscope.collect.profiler import KinetoWindow
from syncscope.collect.ready_ranks import IN_TRAINING_S, PATIENCE_S, ReadyRanks
from syncscope.collect.recorded import Census, NoCensus, Recorded
from syncscope.collect.relatives import several_ranks
from syncscope.collect.sites.stacks import Stacks
from syncscope.collect.sites.threads import Threads
from syncscope.collect.timer import raise_on_main_thread
from syncscope.collect.windows import Windows
from syncscope.schema.recording import SiteEvent

MOST_PHASES = 4
"""Phases that get windows, training not counted."""

SHARE = 0.05
"""Of the time since the first phase began: what a phase takes before it gets windows."""

RANKS_TRAIN_NS = 1_000_000_000
"""Of several ranks, what another phase takes before it gets windows where the program has made an optimiser and has not
trained yet: one rank may evaluate first, and record other steps of the training than those that do not."""

FREQUENT = 4
"""An end of an epoch or a checkpoint in every fourth step or more often does not interrupt a window, nor does a loop
that begins anew as often."""

STOP_AFTER_S = 10.0
"""How long ``--stop`` waits for training after the windows of a program that has made no optimiser so far."""

LONG_ENOUGH_S = 1.0
"""A bare window that lasted this many seconds and whose median is known is not followed by another."""

LONG_STEP_S = 1.0
"""A program may make just a few steps as long as this."""

RANKS_FIRST = 2
"""Of several ranks, the first step that may be followed by windows: its length is the same for all."""

STEPPED_KINDS = ("train", "evaluate", "generate", "rollout", "other")


class StopProgram(SystemExit):
    """Raised at a step boundary after the windows, where the user asked to end the program there."""


@dataclass
class _Take:
    """The windows of one phase."""

    phase: Phase
    windows: Windows
    times: int
    """The phase had begun so often at its last step."""
    plans: list[Plan] = field(default_factory=list)
    """Of the windows that come after these."""
    done_at: float | None = None
    """By ``time.monotonic``, in seconds."""


class Schedule:
    """Begins, resumes and interrupts windows as the program goes from phase to phase.

    ``on_recorded(phase, recorded)`` is called each time that windows of a phase are over and hold something, which may
    be twice: the later ones are better. ``on_bare(phase, recorded)`` follows with better bare steps, and nothing else
    than those. ``training_may_come()`` says whether the program has made an optimiser, ``compilations()`` how often
    something was compiled.
    """

    def __init__(
        self,
        plan: Plan,
        torch: Any,
        stacks: Stacks,
        threads: Threads,
        on_recorded: Callable[[Phase, Recorded], None],
        *,
        sync: Callable[[], None],
        on_bare: Callable[[Phase, Recorded], None] = lambda phase, recorded: None,
        counter: Callable[[], Counter | None] = lambda: None,
        signals: Callable[[], Signals | None] = lambda: None,
        clocks: ClockWatch | None = None,
        phases: Callable[[], Sequence[Phase]],
        training_may_come: Callable[[], bool],
        looks: Looks | None = None,
        compilations: Callable[[], int] = lambda: 0,
        ready_ranks: ReadyRanks | None = None,
    ) -> None:
        self.stopped = False
        """Whether the program was ended as planned."""
        self.notes: list[str] = []
        """What windows said that recorded nothing."""
        self._plan = plan
        self._parts = torch, stacks, threads
        self._on_recorded = on_recorded
        self._on_bare = on_bare
        self._signals = signals
        self._clocks = clocks
        self._sync = sync
        self._counter = counter
        self._phases = phases
        self._training_may_come = training_may_come
        self.looks = looks
        self._compilations = compilations
        self._ready_ranks = ready_ranks
        self._made: dict[str, int] = {}
        """How many windows each kind of phase has had."""
        self._takes: dict[int, _Take] = {}
        self._over = False
        self._ended_s = 0.0
        """When the latest step ended, by ``time.monotonic``, ..."""
        self._latest_s = 0.0
        """... and how long it lasted."""

    def stepped(self, phase: Phase) -> int:
        """A step of ``phase`` ended. Returns how many more may end before this must be called again: none while there
        are windows to record or steps to look at. Raises ``StopProgram`` where the program ends here."""
        if self._over:
            return sys.maxsize
        now = time.monotonic()
        self._latest_s, self._ended_s = now - self._ended_s, now
        if self.looks is not None:
            self.looks.end(phase)
        take = self._takes.get(phase.number)
        if take is None and self._may_begin(phase):
            take = self._takes[phase.number] = self._begin(phase)
        if take is not None and take.done_at is None and not self._must_wait(take):
            began_anew = phase.times != take.times and not _begins_often(phase)
            take.windows.boundary(phase.steps, intruder=phase.intruder, began_anew=began_anew)
        if take is not None:
            take.times = phase.times
        if self._plan.stop and self._may_stop():
            first, self.stopped = not self.stopped, True
            if first and threading.get_ident() != threading.main_thread().ident:
                raise_on_main_thread(StopProgram)  # ours ends this thread only
            raise StopProgram(0)
        self._look_at(phase)
        if self.looks is not None and self.looks.wants(phase):
            return 0
        if take is None:
            return max(self._plan.begin_at - phase.steps, 1) - 1 if phase.kind in STEPPED_KINDS else sys.maxsize
        return sys.maxsize if take.done_at is not None else 0

    @property
    def idle(self) -> bool:
        """Whether no windows are planned, but those of phases that may come."""
        return not self._over and all(take.done_at is not None for take in tuple(self._takes.values()))

    def _look_at(self, phase: Phase) -> None:
        if self.looks is not None and self.idle:
            self.looks.begin(phase)

    def changed(self, before: Phase, after: Phase) -> None:
        """The program went from one phase to another, maybe in the middle of a step."""
        if self.looks is not None:
            self.looks.end()
        for take in self._occupied():
            if not _is_part_of(after, take.phase):
                take.windows.interrupt()
        if after.kind in STEPLESS:
            self._look_at(after)

    def folded(self, phase: Phase, into: Phase) -> None:
        """``phase`` is part of another one."""
        take = self._takes.pop(phase.number, None)
        if take is not None:
            take.windows.discard()

    def better_source(self, phase: Phase) -> None:
        """The steps of ``phase`` were the wrong ones so far: begin again."""
        take = self._takes.pop(phase.number, None)
        if take is not None:
            take.windows.discard()

    def close(self, note: str) -> None:
        """End the windows that are still open. ``note`` says why."""
        self._over = True
        if self.looks is not None:
            self.looks.end()
        for take in list(self._takes.values()):
            if take.done_at is None:
                take.plans.clear()
                take.windows.close(note)
        if self._ready_ranks is not None:
            self._ready_ranks.leave()
        self._rest()

    def _may_begin(self, phase: Phase) -> bool:
        if not self._plan.windows or phase.kind not in STEPPED_KINDS:
            return False
        if phase.steps < self._plan.begin_at or self._occupied():
            return False
        if phase.steps < RANKS_FIRST and several_ranks(self._parts[0]):
            return False
        if self._plan.phase is not None:
            return self._plan.phase in (phase.kind, phase.name, function_of(phase))
        if phase.kind == "train":
            return True
        others = sum(take.phase.kind != "train" for take in self._takes.values())
        taken = sum(one.time_ns for one in self._phases() if one.kind != "start")
        return others < MOST_PHASES and phase.time_ns >= SHARE * taken and not self._awaits_training(phase)

    def _awaits_training(self, phase: Phase) -> bool:
        """Whether the training of several ranks, which may come yet, is recorded before ``phase``."""
        if phase.time_ns >= RANKS_TRAIN_NS or any(take.phase.kind == "train" for take in self._takes.values()):
            return False
        return several_ranks(self._parts[0]) and self._training_may_come()

    def _begin(self, phase: Phase) -> _Take:
        plan = self._plan
        plans = [plan]
        early = plan.early(of_few=self._makes_few_steps(phase))
        if 2 * early.least_steps > plan.least_steps:  # nearly as short: its steps, and no more of others
            plans = [replace(plan, settle=min(plan.settle, plan.least_steps))]
        elif phase.kind == "train" or not self._takes:
            plans.insert(0, early)
        return _Take(phase, self._windows(plans.pop(0), phase), phase.times, plans)

    def _makes_few_steps(self, phase: Phase) -> bool:
        """Whether the steps of ``phase`` are so long that there may be few of them. Ranks must decide alike: each has
        begun at its own time, but a step whose gradients they have exchanged ends at the same time for all."""
        if several_ranks(self._parts[0]):
            return self._latest_s > LONG_STEP_S
        return phase.time_ns > LONG_STEP_S * 1e9 * phase.steps

    def _windows(self, plan: Plan, phase: Phase) -> Windows:
        made = self._made[phase.kind] = self._made.get(phase.kind, 0) + 1
        return Windows(
            plan, *self._parts, self._finished(phase.number), sync=self._sync,
            census=census_of(self._counter(), phase), signals=self._signals(), clocks=self._clocks,
            compilations=self._compilations, ready_ranks=self._ready_ranks, name=f"{phase.kind}{made}",
            patience_s=IN_TRAINING_S if phase.kind == "train" else PATIENCE_S,
        )  # fmt: skip

    def _finished(self, number: int) -> Callable[[Windows], None]:
        def on_finish(windows: Windows) -> None:
            take = self._takes[number]
            recorded, windows.recorded = windows.recorded, Recorded()  # megabytes, not to be kept
            if windows.plan.repeats_bare:
                if recorded.bare is not None:
                    self._on_bare(take.phase, recorded)
            elif recorded.timed is None:
                self._note(*recorded.notes, *([recorded.failure] if recorded.failure else []))
            if recorded.failure is not None:
                take.plans.clear()
            elif windows.gave_way and recorded.timed is None and not self._over:
                take.plans.insert(0, windows.plan)  # begins when the other profiler is done
            elif not take.plans and self._may_repeat(windows.plan, recorded):
                take.plans.append(windows.plan.again())
            if take.plans:
                take.windows = self._windows(take.plans.pop(0), take.phase)
            else:
                take.done_at = time.monotonic()
                self._rest()
            if recorded.timed is not None:
                self._on_recorded(take.phase, recorded)

        return on_finish

    def _may_repeat(self, plan: Plan, recorded: Recorded) -> bool:
        """Whether bare steps are timed again after these windows."""
        if self._over or plan.repeats_bare or not (plan.bare and plan.bare_seconds) or KinetoWindow.attached:
            return False
        if recorded.timed is None or recorded.bare is None:
            return False
        took = sum(recorded.bare.steps_ns) / 1e9
        return took < plan.bare_seconds and not (took > LONG_ENOUGH_S and is_known(recorded.bare.steps_ns))

    def _rest(self) -> None:
        """Leave the GPU's sensors alone where no windows are under way."""
        if self._clocks is not None and all(take.done_at is not None for take in self._takes.values()):
            self._clocks.close()

    def _note(self, *notes: str) -> None:
        self.notes += [note for note in notes if note not in self.notes]

    def _occupied(self) -> list[_Take]:
        return [take for take in self._takes.values() if take.windows.occupied]

    def _must_wait(self, take: _Take) -> bool:
        """Whether the windows of another phase, of which this one may be a part, come first."""
        outer = take.phase.in_every_step_of
        around = self._takes.get(outer.number) if outer is not None else None
        if around is not None and around.done_at is None:
            return True
        return any(other is not take for other in self._occupied())

    def _may_stop(self) -> bool:
        done = {number: take for number, take in self._takes.items() if take.done_at is not None}
        trained = any(take.phase.kind == "train" or take.phase.source == "seconds" for take in done.values())
        if self._plan.phase is not None or trained:
            return bool(done)
        if not done or self._training_may_come():
            return False
        longest = max(self._phases(), key=lambda phase: phase.time_ns if phase.kind in STEPPED_KINDS else -1)
        take = done.get(longest.number)
        return take is not None and time.monotonic() - (take.done_at or 0) > STOP_AFTER_S


def census_of(counter: Counter | None, phase: Phase) -> Census:
    """What counts in a window of ``phase``."""
    return NoCensus() if counter is None else _Census(counter, phase)


class _Census:
    """Hands what the windows of ``phase`` saw to the counter."""

    def __init__(self, counter: Counter, phase: Phase) -> None:
        self.suspend, self.resume = counter.suspend, counter.resume
        self._counter = counter
        self._phase = phase

    def add_window(self, events: Sequence[SiteEvent], boundaries_ns: Sequence[int]) -> None:
        self._counter.add_window(self._phase, events, boundaries_ns)


def _begins_often(phase: Phase) -> bool:
    """Whether the loop of ``phase`` begins anew every few steps."""
    return phase.times * FREQUENT >= phase.steps


def _is_part_of(inner: Phase, outer: Phase) -> bool:
    """Whether ``inner`` belongs to the steps of ``outer``."""
    phase: Phase | None = inner
    while phase is not None:
        if phase is outer:
            return True
        phase = phase.in_every_step_of
    return inner.kind in ("epoch end", "checkpoint") and inner.times * FREQUENT >= outer.steps
