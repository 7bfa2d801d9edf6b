"""Follow a program's events: which phase each belongs to, and where its steps end."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

from syncscope.collect.paths import Paths, project_root
from syncscope.collect.phases.book import MAX_LOOPS, QUIET, Listener
from syncscope.collect.phases.choice import PATIENCE, ROLLS, Event, PhaseChoice
from syncscope.collect.phases.decision import Decision, Where
from syncscope.collect.phases.ends import LoopEnd, Over
from syncscope.collect.phases.loops import Loop
from syncscope.collect.phases.nests import Nest, Nests
from syncscope.collect.phases.phase import CallPlace, Phase, StepPlace
from syncscope.collect.phases.places import record
from syncscope.schema.counting import RecordedPhase

MAX_DECISIONS = 4096

ENDS, ENDS_NS = 0.002, 1_000_000
"""The share of the time, and what may be spent at once, that hearing of the ends of loops that turn may take."""

BRIEF_NS = 100_000_000
"""A loop that turns for so long on average is left when it is over; one that is called more often, so that its times
are taken for one, once in so long. Leaving a phase and coming back takes some 0.2 ms."""


class GradientPlace:
    """A line that asks for gradients, and how often it did: the owner of the steps that end there."""

    times = 0


class PhaseTracker(PhaseChoice):
    """Finds phases and their steps. ``at`` is called at every wait, the other methods by ``Signals``.

    ``clock`` counts nanoseconds.
    """

    def __init__(
        self, listener: Listener, paths: Paths | None = None, clock: Callable[[], int] = time.perf_counter_ns
    ) -> None:
        super().__init__(listener, clock)
        self.nests = Nests(paths or Paths(project_root(Path.cwd())))
        self.by_time = False
        """Only ``tick`` ends steps."""
        self._key: tuple[int, int, int, int, Event] = (0, 0, 0, 0, "call")
        self._returns: list[Phase] = []
        self._gradient_places: dict[tuple[CodeType, int] | None, GradientPlace] = {}
        self._where: Where = "outside"
        """The last event, and the loop of its phase."""
        self._thread = threading.main_thread().ident or 0
        self._loop_end = LoopEnd()
        self._turning: list[Loop] = []
        """Loops whose turns are steps."""
        self._watched_ns = 0
        """When the end of a loop that turns was last to be heard."""

    def is_like_last(self, event: Event, frame: FrameType | None) -> bool:
        """Whether ``event`` with this innermost ``frame`` comes from the same place as the last one of its kind."""
        latest: Decision | None = self._latest.get(event)
        if latest is None or latest.phase is not self.current:
            return False
        for _ in range(latest.skipped):
            frame = frame.f_back if frame is not None else None
        if frame is None or frame.f_lasti != latest.lasti or frame.f_code is not latest.code:
            return False
        for lasti in latest.path:
            frame = frame.f_back
            if frame is None or frame.f_lasti != lasti:
                return False
        caller = frame.f_back
        return id(frame) == latest.frame_id and (caller is None or caller.f_code is latest.around)

    # What happens in the program.

    def optimizer_stepped(self, frame: FrameType | None, optimizer: Any) -> None:
        """``optimizer`` made a step, or a scaler skipped it."""
        phase, expected = self._phase_of("step", frame), self.expected
        if phase.evaluates and phase.owner is not None and phase.owner() is optimizer:
            if phase.loop is None:  # that was all of it
                self._enter(self._pseudo_phase("epoch end"))
            return
        if phase.source != "user" and not self.by_time:
            if expected.second == id(optimizer):
                phase.since_owner += QUIET - expected.seconds  # those that were not told
            if self._is_boundary(phase, "optimizer", optimizer):
                self._boundary(phase, "step", optimizer)
            elif phase is self.current and phase.source == "optimizer":
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
        phase = self._phase_of(event, frame)
        self.expected.call_event = event
        self.expected.quiet = QUIET
        place = self._call_place(frame)
        if phase.shares and event == "eval" and place is not None:
            phase.last_called_at = place
            phase.called_at = phase.called_at or phase.last_called_at
        if self._where == "outside":
            return
        phase.calls += 1
        if phase.source in ("optimizer", "user") or self.by_time or phase.loop is None:
            return
        if phase.source == "turn" and self._calls_seldom(phase):
            return
        if phase.kind == "train":
            phase.training_calls += 1
            if phase.source in ("none", "turn") and phase.training_calls < PATIENCE:
                self._seen_before(phase, "module", module, self._step_place(phase, frame))
                return
        if phase.by_batch:
            self._count_batch(phase)
        elif self._where == "inside":
            phase.called_inside = True
            return
        elif self._is_boundary(phase, "module", module, self._step_place(phase, frame)):
            self._boundary(phase, event, module)

    def gradients_computed(self, frame: FrameType | None, event: Event) -> None:
        """Gradients were computed: the end of a step where nothing else tells of steps for long."""
        place = self._place_of(frame)
        place.times += 1
        if self.by_time or place.times < PATIENCE:
            return
        phase = self._phase_of(event, frame)
        if self._where == "outside" or phase.source not in ("none", "gradient", "turn"):
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
        if phase.source not in ("none", "turn") or loop not in phase.loops:
            return
        if phase.source == "none":
            self._choose(phase, "turn", None)
            self._turning.append(loop)
        self._boundary(phase, "turn", loop)
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

    def _calls_seldom(self, phase: Phase) -> bool:
        """Whether a module is called in fewer than half of the turns of its loop: they stay its steps."""
        turns = phase.steps + (self.expected.unheard if phase is self.current else 0)
        if not phase.calls_in_turns:
            phase.first_call_at = turns
        phase.calls_in_turns += 1
        return 2 * phase.calls_in_turns < turns - phase.first_call_at

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

    def _place_of(self, frame: FrameType | None) -> GradientPlace:
        """What stands for the program's line that asked for gradients."""
        key = self._call_place(frame)
        if len(self._gradient_places) >= MAX_LOOPS:
            self._gradient_places.clear()
        return self._gradient_places.setdefault(key, GradientPlace())

    def _call_place(self, frame: FrameType | None) -> CallPlace:
        """Where the program calls something, with this innermost ``frame``."""
        inner = self.nests.innermost(frame)
        return (inner.f_code, inner.f_lasti) if inner is not None else None

    def _step_place(self, phase: Phase, frame: FrameType | None) -> StepPlace | None:
        """The same, and where the loop of ``phase`` stands."""
        inner = outer = self.nests.innermost(frame)
        if inner is None:
            return None
        while outer is not None and id(outer) != phase.frame_id:
            outer = outer.f_back
        around = (outer.f_code, outer.f_lasti) if outer is not None else (None, 0)
        return StepPlace(inner.f_code, inner.f_lasti, *around)

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
            if phase.kind == "train":
                return  # begun again: it may evaluate this time
            self._begin(phase, frame_id)
        if self.current is not phase:
            self._enter(phase)
        elif phase.kind == "train" and phase.source in ("optimizer", "user") and frame is not None:
            expected = self.expected
            expected.loader, expected.batches = id(loader), QUIET
            expected.batch_code, expected.batch_lasti = frame.f_code, frame.f_lasti

    def loader_ended(self, frame: FrameType | None) -> None:
        """A loader has no further batch."""
        nest = self.nests.read(self.nests.innermost(frame))
        loop = self._batch_loop(nest)
        phase = self._by_loop.get(loop) if loop is not None else None
        if phase is None or not phase.frame_id or phase.ended:
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
        if phase.kind == "train" or turned:
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
        phase = self._phase_of("user", frame)
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

    # Which phase an event belongs to.

    def _phase_of(self, event: Event, frame: FrameType | None) -> Phase:
        """The phase of ``event``, which is current from now on."""
        if self.current.shares and self._is_of_evaluation(event, frame):
            self._where, self._calls_around = "outside", 0
            return self.current
        if self.is_like_last(event, frame):
            latest, phase = self._latest[event], self.current
            if phase.frame_id == latest.frame_id:
                self._where, self._calls_around = latest.where, 0
                return phase
        called_from = None
        decision = self._known(frame, event)
        if decision is not None and decision.phase is not None:
            phase, frame_id, self._where = decision.phase, decision.frame_id, decision.where
            if phase is self.current and phase.frame_id == frame_id:
                self._calls_around = 0
                return phase
        else:
            self._latest.pop(event, None)  # of another place
            nest = self.nests.read(self.nests.innermost(frame))
            phase = self._decide(event, nest)
            self._where = _where(phase, nest)
            frame_id = self._place(phase, nest)
            called_from = next((nest.called_from(loop) for loop in nest.loops if nest.frame_of(loop) == frame_id), None)
        if frame_id:
            self._calls_around = 0
            if phase.frame_id != frame_id:
                self._begin(phase, frame_id)
            phase.called_from = called_from or phase.called_from
        if self.current is not phase:
            self._enter(phase)
        return phase

    def _is_of_evaluation(self, event: Event, frame: FrameType | None) -> bool:
        """Whether the evaluation that shares its loop with a training calls a loss or a metric, which nobody switches
        to evaluation. The training may begin again in the same frame: with the module that was evaluated."""
        phase = self.current
        if event not in ("call", "training") or not self._runs(phase, frame):
            return False
        place = self._call_place(frame)
        return event == "call" or place is None or place != phase.called_at

    def _known(self, frame: FrameType | None, event: Event) -> Decision | None:
        """What was decided here before."""
        codes, skipped = self.nests.codes, 0
        while frame is not None:
            code = frame.f_code
            kept = codes.get(id(code))
            if not (kept.skipped if kept is not None else self.nests.of_code(code).skipped):
                break
            frame = frame.f_back
            skipped += 1
        if frame is None:
            return None
        back = frame.f_back
        # Two frames tell most events apart.
        outer, outer_lasti = (0, 0) if back is None else (id(back.f_code), back.f_lasti)
        self._key = key = (id(code), frame.f_lasti, outer, outer_lasti, event)
        decision: Decision | None = self._decisions.get(key)
        if decision is None:
            return None
        outermost = frame
        for lasti in decision.path:
            outermost = back  # type: ignore[assignment]
            if back is None or back.f_lasti != lasti:
                return None
            back = back.f_back
        around = None if outermost.f_back is None else outermost.f_back.f_code
        if id(outermost) != decision.frame_id or decision.around not in (None, around):
            return None
        decision.around = around
        decision.code, decision.lasti, decision.skipped = code, frame.f_lasti, skipped
        decision.depth, decision.outer_lasti = skipped + len(decision.path), outermost.f_lasti
        self._latest[event] = decision
        return decision

    def _place(self, phase: Phase, nest: Nest) -> int:
        """The id of the frame that runs the outermost loop of ``phase``, 0 where there is none. Remembers it."""
        loop = next((loop for loop in reversed(nest.loops) if loop in phase.loops), None)
        if loop is None:
            return 0
        if len(phase.around) < MAX_LOOPS:
            phase.around.update(nest.loops[nest.loops.index(loop) + 1 :])
        frame_id = nest.frame_of(loop)
        self._remember(phase, frame_id, nest)
        return frame_id

    def _remember(self, phase: Phase | None, frame_id: int, nest: Nest) -> None:
        """Decide the same when the same event comes from the same place."""
        depth = [ident for ident, _ in nest.path].index(frame_id)
        if len(self._decisions) >= MAX_DECISIONS:
            self._forget_decisions()
        path = tuple(lasti for _, lasti in nest.path[1 : depth + 1])
        where = _where(phase, nest) if phase is not None else "outside"
        self._decisions[self._key] = Decision(phase, frame_id, path, where)

    def _batch_phase(self, frame: FrameType | None) -> tuple[Phase, int] | None:
        """The phase whose loop takes the batch of a loader, and the frame that runs it."""
        nest = self.nests.read(self.nests.innermost(frame))
        self._tell_calls_apart(nest)
        loop = self._batch_loop(nest)
        if loop is None:
            return None
        if len(self._batches) < MAX_LOOPS and loop not in self._batches:
            self.expected.quiet = 0
            self._batches.add(loop)
            if nest.passed:
                self._ahead.add(loop)
        phase = self._by_loop.get(loop) or self._promote(loop, nest)
        if phase is None:
            self._remember(None, nest.frame_of(loop), nest)
            return None
        return phase, self._place(phase, nest)

    def _runs(self, phase: Phase, frame: FrameType | None) -> bool:
        """Whether the frame that runs the loop of ``phase`` is around ``frame``, and in the loop."""
        ident = phase.frame_id
        while frame is not None:
            if id(frame) == ident:
                lasti, code = frame.f_lasti, frame.f_code
                mine = [loop for loop in phase.loops if loop.code is code]  # none: a later frame with the same number
                owns_rest = phase.owns_function and phase.source != "turn"
                return bool(mine) and (owns_rest or any(loop.holds(lasti) for loop in mine))
            frame = frame.f_back
        return False

    def _leave(self, phase: Phase, frame: FrameType) -> None:
        phase.frame_id = 0
        nest = self.nests.read(self.nests.innermost(frame))
        around = (self._by_loop.get(loop) for loop in nest.loops)
        after = next((other for other in around if other is not None and other is not phase), None)
        if after is None:
            after = self._trains[-1] if self._trains else None
        if after is not None and after.kind == "train" and (after.ended or self._is_between(phase, after)):
            after = self._pseudo_phase("epoch end")
        if after is None and phase.source == "turn":
            after = self._pseudo_phase("epoch end")
        if after is None and phase.kind == "evaluate" and not self._is_one_by_one(phase):
            after = self.phases[0]  # the training has not begun: an agent may act at random for long
        if after is not None:
            self._enter(after)

    @staticmethod
    def _is_one_by_one(phase: Phase) -> bool:
        """Whether its loop, which ends after a step each time, is not what goes on: what is between belongs to it."""
        if phase.times >= ROLLS and 2 * phase.steps <= 3 * phase.times:  # a later frame may be taken for the last one
            phase.one_by_one, phase.times = True, 1
        return phase.one_by_one

    @staticmethod
    def _is_between(evaluation: Phase, train: Phase) -> bool:
        """Whether the loop of ``train`` was over when ``evaluation`` began: what follows, such as a network that is
        made for the next training, is no part of its steps."""
        return evaluation.kind == "evaluate" and train.frame_id == 0


def _where(phase: Phase, nest: Nest) -> Where:
    if not phase.loops.intersection(nest.loops):
        return "outside"
    return "direct" if phase.kind == "train" or nest.loops[0] in phase.loops else "inside"
