"""Follow a program's events: where the steps of phases end."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable
from types import CodeType, FrameType
from typing import Any

from syncscope.collect.paths import Paths
from syncscope.collect.phases.book import Listener
from syncscope.collect.phases.choice import PATIENCE, Event
from syncscope.collect.phases.ends import LoopEnd, Over
from syncscope.collect.phases.loops import Loop
from syncscope.collect.phases.phase import Phase
from syncscope.collect.phases.places import record
from syncscope.collect.phases.quiet_places import QUIET, let_calls_pass
from syncscope.collect.phases.sources import StepSources
from syncscope.schema.counting import RecordedPhase

ENDS, ENDS_NS = 0.002, 1_000_000
"""The share of the time, and what may be spent at once, that hearing of the ends of loops that turn may take."""

BRIEF_NS = 100_000_000
"""A loop that turns for so long on average is left when it is over; one that is called more often, so that its times
are taken for one, once in so long. Leaving a phase and coming back takes some 0.2 ms."""


LONG_PATIENCE = 32 * PATIENCE
"""Calls that are told of a training whose optimizer has made one step, before its modules' calls count as steps: the
second one may come after a test of a thousand other models. Few of those from one place are told."""


class PhaseTracker(StepSources):
    """Finds phases and their steps. ``at`` is called at every wait, the other methods by ``Signals``.

    ``clock`` counts nanoseconds.
    """

    def __init__(
        self, listener: Listener, paths: Paths | None = None, clock: Callable[[], int] = time.perf_counter_ns
    ) -> None:
        super().__init__(listener, paths, clock)
        self.by_time = False
        """Only ``tick`` ends steps."""
        self._returns: list[Phase] = []
        self._loop_end = LoopEnd()
        self._turning: list[Loop] = []
        """Loops whose turns are steps."""
        self._watched_ns = 0
        """When the end of a loop that turns was last to be heard."""
        self._optimizer_calls = 0
        """Of those that were told."""

    # What happens in the program.

    def optimizer_stepped(self, frame: FrameType | None, optimizer: Any, captured: bool = False) -> None:
        """``optimizer`` made a step, or a scaler skipped it. ``captured``: in the capture of a CUDA graph."""
        phase, expected = self._phase_of("step", frame), self.expected
        self._optimizer_calls += 1
        phase.silent &= phase.source == "turn"  # else no loop has turned since it was found to be
        if phase.silent and self._speaks_seldom(phase):
            return
        if captured:
            phase = self._captured(phase, optimizer)
        if phase.evaluates and phase.owner is not None and phase.owner() is optimizer:
            if phase.loop is None:  # that was all of it
                self._enter(self._pseudo_phase("epoch end"))
            return
        if phase.source != "user" and not self.by_time:
            if expected.second == id(optimizer):
                phase.saw_more(optimizer, QUIET - expected.seconds)  # those that were not told
            if self._is_boundary(phase, "optimizer", optimizer):
                self._boundary(phase, "step", optimizer)
            elif phase is self.current and phase.source == "optimizer" and phase.owner_lives:
                expected.second, expected.seconds = id(optimizer), QUIET
        if phase.ended:  # its loader reads ahead: this was the last step
            self._enter(self._pseudo_phase("epoch end"))

    def closure_evaluated(self, frame: FrameType | None, optimizer: Any) -> None:
        """``optimizer`` evaluated its closure, as it does many times in a step of its own: each time is a step."""
        phase = self._phase_of("step", frame)
        if phase.source != "user" and not self.by_time and self._is_boundary(phase, "optimizer", optimizer):
            phase.evaluates = True
            self._boundary(phase, "evaluation", optimizer)

    def module_called(self, frame: FrameType | None, module: Any, event: Event) -> None:
        """``module`` is about to be called, by no other module."""
        self._module, before = module, self.current
        phase = self._phase_of(event, frame)
        self._module = None
        self.expected.call_event = event
        self._let_calls_pass(event, before, phase)
        place = self._call_place(frame)
        if phase.shares and event == "eval" and place is not None:
            phase.last_called_at = place
            phase.called_at = phase.called_at or phase.last_called_at
        if self._where == "outside":
            return
        phase.calls += 1
        if phase.source in ("optimizer", "user") or self.by_time or phase.loop is None or phase.silent:
            return
        if phase.source == "turn" and self._calls_seldom(phase):
            return
        if phase.kind == "train":
            phase.training_calls += 1
            if phase.source in ("none", "turn") and phase.training_calls < PATIENCE:
                self._seen_before(phase, "module", module, self._step_place(phase, frame))
                return
            if phase.source == "none" and phase.optimised and phase.training_calls < LONG_PATIENCE:
                if frame is not None:
                    self.quiet_places.add(frame, event)
                return
        if phase.by_batch:
            self._count_batch(phase)
        elif self._where == "inside":
            phase.called_inside = True
            return
        elif self._is_boundary(phase, "module", module, self._step_place(phase, frame)):
            self._boundary(phase, event, module)

    def _let_calls_pass(self, event: Event, before: Phase, phase: Phase) -> None:
        """A call was told, in ``before``, and belongs to ``phase``."""
        if event != "training":
            return
        if phase is not before:
            before.left_for_calls += before.kind == "train" and phase.loop is not None
        elif self.expected.trains and self._where == "outside":
            self.expected.quiet = 0 if self._rolls.may_be else QUIET
        elif self.expected.trains:
            let_calls_pass(self.expected, phase)

    def gradients_computed(self, frame: FrameType | None, event: Event) -> None:
        """Gradients were computed: the end of a step where nothing else tells of steps for long."""
        place = self._place_of(frame)
        place.times += 1
        if self.by_time or place.times < PATIENCE:
            return
        phase = self._phase_of(event, frame)
        if self._where == "outside" or phase.silent or phase.source not in ("none", "gradient", "turn"):
            return
        if event == "backward" and phase.kind == "other":  # its turns were heard first
            self._make_train(phase)
        phase.calls += 1
        if self._is_boundary(phase, "gradient", place):
            self._boundary(phase, event, place)

    def turned(self, frame: FrameType, loop: Loop) -> None:
        """``loop``, which ``frame`` runs, begins its next turn: the end of a step where nothing else tells of steps."""
        if self.by_time:
            return
        phase = self._phase_of("turn", frame)
        if phase.source not in (("none", "turn", "optimizer") if phase.silent else ("none", "turn")):
            return
        if loop not in phase.loops:
            return
        if phase.source != "turn":
            silent = phase.silent
            self._choose(phase, "turn", None)
            phase.silent = silent
        if loop not in self._turning:
            self._turning.append(loop)
        self._boundary(phase, "turn", loop)
        if phase.kind != "train":  # that is not left when its loop is over
            self._watch_turns(phase, frame)

    def _watch_turns(self, phase: Phase, frame: FrameType) -> None:
        """Hear of the end of the loop that turns, once in each time that it runs: nothing else tells it."""
        if phase is not self.current or self._is_brief(phase) or self._loop_end.watches(phase.frame_id):
            return
        now, most = self._clock(), float(ENDS_NS)
        if self._watched_ns:
            most = min(most, ENDS * (now - self._watched_ns))
        self._watched_ns = now
        self.followed_ns += self._loop_end.watch(frame, phase.loops, self._turns_over, most)

    @staticmethod
    def _is_brief(phase: Phase) -> bool:
        """Whether a loop that turns is over so soon each time that leaving its phase, and coming back, would take too
        much: what is between is part of its steps."""
        return phase.source == "turn" and phase.time_ns < BRIEF_NS * phase.times

    def _turns_over(self, frame: FrameType) -> None:
        """The loop that turned is over, or its function has returned to ``frame``."""
        if self.current.source == "turn":
            self.at(frame)

    def _back_in_turns(self, frame: FrameType | None) -> Phase:
        """The phase of something between two times of a loop that turns, or in the first turn of the next time."""
        while frame is not None and threading.get_ident() == self._thread:
            code, lasti = frame.f_code, frame.f_lasti
            for loop in self._turning:
                phase = self._by_loop.get(loop)
                if loop.code is code and loop.holds(lasti) and phase is not None and phase.source == "turn":
                    phase.ended = False
                    self._begin(phase, id(frame))
                    self._enter(phase)
                    return phase
            frame = frame.f_back
        return self.current

    def _captured(self, phase: Phase, optimizer: Any) -> Phase:
        """A step of ``phase`` was captured. Returns the phase that it belongs to: where no loop is around it, that in
        which ``optimizer`` warmed up."""
        warm = (train for train in self._trains if train.owner is not None and train.owner() is optimizer)
        train = next(warm, phase)
        if train is not phase and not phase.loops and not phase.steps:
            self._fold(phase, train)
            phase = train
        phase.captured = True
        return phase

    def fallen_silent(self) -> Phase | None:
        """The training whose optimiser was captured in a CUDA graph, last. From any thread."""
        trains = [phase for phase in tuple(self._trains) if phase.silent or phase.captured]
        if not trains or self.by_time or trains[-1].source == "user":
            return None
        return trains[-1]

    @property
    def told(self) -> int:
        """Changes with each step that is told, and with some that are not. From any thread."""
        return sum(phase.steps for phase in tuple(self.phases)) + self.unheard + self._optimizer_calls

    @property
    def has_better_steps(self) -> bool:
        """Whether a phase has steps that something else than gradients or turns tells."""
        return self.by_time or any(phase.source not in ("none", "gradient", "turn") for phase in self.phases)

    @property
    def has_steps_but_turns(self) -> bool:
        """Whether a phase has steps that something else than turns of its loop tells."""
        return self.by_time or any(phase.source not in ("none", "turn") for phase in self.phases)

    @property
    def may_have_steps(self) -> bool:
        """Whether a module was called, or gradients were computed: these may tell of steps yet."""
        return bool(self.expected.call_event or self._gradient_places)

    def takes_batches(self, loop: Loop) -> bool:
        """Whether ``loop`` takes the batches of a loader."""
        return loop in self._batches

    def loader_next(self, frame: FrameType | None, loader: Any = None) -> None:
        """The iterator ``loader`` gave a batch."""
        decision = self._known(frame, "next")
        if decision is not None and (decision.phase is not None or not self._may_promote()):
            if decision.phase is None:
                return
            phase, frame_id = decision.phase, decision.frame_id
        else:
            found = self._batch_phase(frame)
            if found is None:
                return
            phase, frame_id = found
        phase.batches += 1
        if phase.ended:
            phase.ended, phase.frame_id = False, 0
        if phase.frame_id != frame_id:
            if phase.kind == "train":  # begun again: it may evaluate this time
                if (self.current.kind == "epoch end" or self.current.shares) and phase.learns_from(loader):
                    self._enter(phase)
                return
            self._begin(phase, frame_id)
        if self.current is not phase:
            self._enter(phase)
        elif phase.kind == "train" and phase.source in ("optimizer", "user") and frame is not None:
            expected = self.expected
            phase.learn_from(loader)
            expected.loader, expected.batches = id(loader), QUIET
            expected.batch_code, expected.batch_lasti = frame.f_code, frame.f_lasti

    def loader_ended(self, frame: FrameType | None) -> None:
        """A loader has no further batch."""
        nest = self.nests.read(self.nests.innermost(frame))
        loop = self._batch_loop(nest)
        phase = self._by_loop.get(loop) if loop is not None else None
        if phase is None or not phase.frame_id or phase.ended:
            if phase is self.current and phase.kind == "train" and not phase.frame_id:
                self._enter(self._pseudo_phase("epoch end"))  # it did nothing with its batches
            return
        around = nest.loops[nest.loops.index(loop) + 1 :] if loop is not None else []
        if phase.loops.intersection(around):
            return  # a loader inside of each step
        phase.ended = True
        self._listen()
        if frame is not None and phase is self.current and self._loop_end.watches(phase.frame_id):
            self._loop_end.leave_loop(frame)
        if phase.called:  # by another function of the library's next time, maybe: frames do not tell
            self._forget_decisions()
        turned = phase.source == "turn" and phase is self.current and not self._is_brief(phase)
        if (phase.kind == "train" or turned) and self.current.kind != "epoch end":
            self._enter(self._pseudo_phase("epoch end"))

    def leave_training(self) -> None:
        """The loop of a training is over, as the end that ``watch_end`` asked for tells. Its next step comes back."""
        if self.current.kind == "train" and not self.by_time and self.current.source not in ("user", "turn"):
            self._enter(self._pseudo_phase("epoch end"))

    def checkpoint_begins(self, frame: FrameType) -> None:
        """``torch.save`` or ``torch.load`` begins."""
        self.at(frame)
        self._returns.append(self.current)
        self._enter(self._pseudo_phase("checkpoint"))

    def checkpoint_ends(self) -> None:
        """``torch.save`` or ``torch.load`` is over."""
        before = self._returns.pop() if self._returns else self.phases[0]
        if self.current.kind == "checkpoint":
            self._enter(before.folded_into or before)

    def user_stepped(self, frame: FrameType | None) -> None:
        """The program called ``syncscope.step()``."""
        if self.by_time:
            return
        phase = self._phase_of("user", self.nests.trainer_of(frame))
        if phase.source != "user":
            self._choose(phase, "user", None)
        self._boundary(phase, "user", None)

    def tick(self) -> None:
        """A stretch of time ended, where steps are recorded by time."""
        self.by_time = True
        phase = self._pseudo_phase("other")
        if self.current is not phase:
            self._enter(phase)
        if phase.source != "seconds":
            self._choose(phase, "seconds", None)
        self._boundary(phase, "tick", None)

    def follow(self, thread: int) -> None:
        """Events come from another thread from now on, whose frames are others."""
        self._listen()
        self._thread = thread
        self.expected.inside_call = False
        self.current.frame_id = 0
        self._forget_decisions()

    # What the collector asks.

    def at(self, frame: FrameType) -> Phase:
        """The phase of something that happens now, with this innermost frame. Leaves a phase whose loop is over."""
        expected = self.expected
        if expected.lent:
            expected.take_back()
        phase, left = self.current, expected.left
        if unheard := expected.most - left:  # ``hear``, without a call of a function
            expected.most = left
            phase.steps += unheard
            phase.calls += unheard
            self.followed_ns += unheard * phase.passing_ns
            phase.timed = False
        if phase.kind == "epoch end" and self._turning:
            return self._back_in_turns(frame)
        if phase.frame_id == 0 or phase.kind == "train" or expected.inside_call:
            return phase
        if threading.get_ident() != self._thread or self._runs(phase, frame) or self._is_brief(phase):
            return phase
        self._leave(phase, frame)
        return self.current

    def watch_end(self, over: Over, most_ns: float) -> float:
        """Let ``over`` be called once the loop of the current phase is over, before the program does anything else,
        where Python or a loader tells it. Returns what that takes, about ``most_ns`` at most; 0 where it is watched
        already."""
        phase = self.current
        if not phase.frame_id or self._loop_end.watches(phase.frame_id) or threading.get_ident() != self._thread:
            return 0.0
        frame: FrameType | None = sys._getframe(1)
        while frame is not None and id(frame) != phase.frame_id:
            frame = frame.f_back
        return self._loop_end.watch(frame, phase.loops, over, most_ns) if frame is not None else 0.0

    def is_in_loop(self, number: int, code: CodeType, lasti: int) -> bool:
        """Whether an instruction is inside of a loop of the phase with this number."""
        mine = (loop for phase in self.phases if phase.number == number for loop in phase.loops)
        return any(loop.code is code and loop.holds(lasti) for loop in mine)

    @property
    def thread(self) -> int:
        """The thread whose phases these are."""
        return self._thread

    def stop_watching(self) -> None:
        """Let nobody hear of the end of a loop any more."""
        self._loop_end.stop()

    def recorded(self, now_ns: int | None = None) -> tuple[RecordedPhase, ...]:
        """All phases, by their numbers, with their times up to ``now_ns``. One that was folded into another has no
        time and was never entered."""
        if self.unheard and threading.get_ident() == self._thread:
            self.hear()
        self.settle(now_ns)
        return record(self.phases, self.nests.paths)
