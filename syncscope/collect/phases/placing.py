"""Where an event is: the phase that it belongs to, and the frame that runs the loop of that.

What was decided of an event is remembered by its place: most are told by two frames.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from pathlib import Path
from types import FrameType

from syncscope.collect.paths import Paths, project_root
from syncscope.collect.phases.book import MAX_LOOPS, Listener
from syncscope.collect.phases.choice import Event, PhaseChoice
from syncscope.collect.phases.decision import Decision, Where
from syncscope.collect.phases.nests import Nest, Nests
from syncscope.collect.phases.phase import CallPlace, Phase
from syncscope.collect.phases.rolls import ROLLS

MAX_DECISIONS = 4096


class PhasePlacing(PhaseChoice):
    """Finds the phase of each event, and whether the loop of a phase still runs."""

    def __init__(
        self, listener: Listener, paths: Paths | None = None, clock: Callable[[], int] = time.perf_counter_ns
    ) -> None:
        super().__init__(listener, clock)
        self.nests = Nests(paths or Paths(project_root(Path.cwd())))
        self._key: tuple[int, int, int, int, Event] = (0, 0, 0, 0, "call")
        self._where: Where = "outside"
        """The last event, and the loop of its phase."""
        self._thread = threading.main_thread().ident or 0
        """The thread that is followed."""
        self.begins_late = False
        """The current phase is known by turns of its loop, after many of them."""

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
            self.begins_late = event == "turn"
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

    def _call_place(self, frame: FrameType | None) -> CallPlace:
        """Where the program calls something, with this innermost ``frame``."""
        inner = self.nests.innermost(frame)
        return (inner.f_code, inner.f_lasti) if inner is not None else None

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
                owns_rest = phase.owns_function and phase.source != "turn"
                for loop in phase.loops:  # noqa: SIM110 each wait asks, and a generator is a call more
                    if loop.code is code and (owns_rest or loop.holds(lasti)):
                        return True
                return False  # also a later frame with the same number
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
