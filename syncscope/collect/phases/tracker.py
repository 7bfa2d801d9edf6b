"""Which phase a program is in, from the loops that run and from what is called in them.

An optimiser's step makes its loop a training loop. A call of a module in training, with gradients, is part of the
training around it. Any other outermost call of a module is part of the training where its innermost loop is the
training's or encloses it; else the loop is a phase of its own.
"""

from __future__ import annotations

import threading
from pathlib import Path
from types import FrameType
from typing import Any, Literal

from syncscope.collect.paths import Paths, project_root
from syncscope.collect.phases.book import Listener, PhaseBook
from syncscope.collect.phases.loops import Loop
from syncscope.collect.phases.nests import Nest, Nests
from syncscope.collect.phases.phase import Phase
from syncscope.collect.phases.places import name_phases, record, show_place
from syncscope.schema.counting import PhaseKind, RecordedPhase

PATIENCE = 32
"""Calls of a module in training, without an optimiser's step, before its calls count as steps."""

MAX_DECISIONS = 4096

TAKEOVER = 64
"""Steps of other optimisers, without one of the chosen optimiser, after which another is chosen."""

GENERATING = frozenset(("generate", "generation", "sample", "sampling", "decode", "beam"))
"""Words in the names of functions that generate."""

Event = Literal["step", "training", "call", "eval", "next", "user"]
"""What happened: an optimiser stepped; an outermost module was called in training with gradients, in training without,
or not in training; a loader gave a batch; the program said that a step ended."""


Where = Literal["direct", "inside", "outside"]
"""An event in the loop of its phase, in a further loop inside of it, or in none of its loops."""


class Decision:
    """The phase of an event, as long as the frames out to the one with its loop stand where they stood.

    ``path`` is their ``f_lasti``, without the innermost. ``phase`` is ``None`` for a batch that no phase asks for.
    """

    __slots__ = ("frame_id", "path", "phase", "where")

    def __init__(self, phase: Phase | None, frame_id: int, path: tuple[int, ...], where: Where) -> None:
        self.phase = phase
        self.frame_id = frame_id
        self.path = path
        self.where = where


class PhaseTracker(PhaseBook):
    """Finds phases and their steps. ``at`` is called at every wait, the other methods by ``Signals``.

    Times are of ``time.perf_counter_ns``.
    """

    def __init__(self, listener: Listener, paths: Paths | None = None) -> None:
        super().__init__(listener)
        self.nests = Nests(paths or Paths(project_root(Path.cwd())))
        self.inside_call = False
        """The main thread is in an outermost call of a module."""
        self.by_time = False
        """Only ``tick`` ends steps."""
        self._evaluations: dict[Loop | None, Phase] = {}
        self._key: tuple[int, int, int, Event] = (0, 0, 0, "call")
        self._returns: list[Phase] = []
        self._where: Where = "outside"
        """The last event, and the loop of its phase."""
        self._calls_around = 0
        """Calls in a loop around the current phase's, since an event in it."""
        self._thread = threading.get_ident()

    # What happens in the program.

    def optimizer_stepped(self, frame: FrameType | None, optimizer: Any) -> None:
        """``optimizer`` made a step, or a scaler skipped it."""
        phase = self._phase_of("step", frame)
        if phase.source != "user" and not self.by_time and self._is_boundary(phase, optimizer):
            self._boundary(phase)
        if phase.ended:  # its loader reads ahead: this was the last step
            self._enter(self._pseudo_phase("epoch end"))

    def _is_boundary(self, phase: Phase, optimizer: Any) -> bool:
        """Whether steps of ``phase`` end with those of ``optimizer``: the first that stepped twice."""
        chosen = phase.source == "optimizer"
        owner = phase.owner() if chosen and phase.owner is not None else None
        if owner is not optimizer:
            phase.since_owner += 1
            gone = chosen and owner is None
            if chosen and not gone and phase.since_owner < TAKEOVER:
                return False
            if not gone and not self._seen_before(phase, optimizer):
                return False
            self._choose(phase, "optimizer", optimizer)
        phase.since_owner = 0
        return True

    def module_called(self, frame: FrameType | None, module: Any, event: Event) -> None:
        """``module`` is about to be called, by no other module."""
        phase = self._phase_of(event, frame)
        if self._where == "outside":
            return
        phase.calls += 1
        if phase.source in ("optimizer", "user") or self.by_time or phase.loop is None:
            return
        if phase.kind == "train":
            phase.training_calls += 1
            if phase.source == "none" and phase.training_calls < PATIENCE:
                self._seen_before(phase, module)
                return
        if phase.by_batch:
            self._count_batch(phase)
        elif self._where == "inside":
            return
        elif phase.source == "none":
            if self._seen_before(phase, module):
                self._choose(phase, "module", module)
                self._boundary(phase)
        elif phase.owner is not None and phase.owner() is module:
            self._boundary(phase)
        elif phase.owner is not None and phase.owner() is None and self._seen_before(phase, module):
            self._choose(phase, "module", module)

    def loader_next(self, frame: FrameType | None) -> None:
        """A loader gave a batch."""
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

    def loader_ended(self, frame: FrameType | None) -> None:
        """A loader has no further batch."""
        nest = self.nests.read(self.nests.innermost(frame))
        loop = self._batch_loop(nest)
        phase = self._by_loop.get(loop) if loop is not None else None
        if phase is None or not phase.frame_id or phase.ended:
            return
        phase.ended = True
        if phase.kind == "train":
            self._enter(self._pseudo_phase("epoch end"))

    def save_begins(self, frame: FrameType) -> None:
        """``torch.save`` begins."""
        self.at(frame)
        self._returns.append(self.current)
        self._enter(self._pseudo_phase("checkpoint"))

    def save_ends(self) -> None:
        """``torch.save`` is over."""
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
        self._boundary(phase)

    def tick(self) -> None:
        """A stretch of time ended, where steps are recorded by time."""
        self.by_time = True
        phase = self._pseudo_phase("other")
        if self.current is not phase:
            self._enter(phase)
        if phase.source != "seconds":
            self._choose(phase, "seconds", None)
        self._boundary(phase)

    # What the collector asks.

    def at(self, frame: FrameType) -> Phase:
        """The phase of something that happens now, with this innermost frame. Leaves a phase whose loop is over."""
        phase = self.current
        if phase.frame_id == 0 or phase.kind == "train" or self.inside_call:
            return phase
        if threading.get_ident() != self._thread or self._runs(phase, frame):
            return phase
        self._leave(phase, frame)
        return self.current

    def recorded(self) -> tuple[RecordedPhase, ...]:
        """All phases, by their numbers. One that was folded into another has no time and was never entered."""
        self.settle()
        return record(self.phases, self.nests.paths)

    # Which phase an event belongs to.

    def _phase_of(self, event: Event, frame: FrameType | None) -> Phase:
        """The phase of ``event``, which is current from now on."""
        decision = self._known(frame, event)
        if decision is not None and decision.phase is not None:
            phase, frame_id, self._where = decision.phase, decision.frame_id, decision.where
        else:
            nest = self.nests.read(self.nests.innermost(frame))
            phase = self._decide(event, nest)
            self._where = _where(phase, nest)
            frame_id = self._place(phase, nest)
        if frame_id:
            self._calls_around = 0
            if phase.frame_id != frame_id:
                self._begin(phase, frame_id)
        if self.current is not phase:
            self._enter(phase)
        return phase

    def _known(self, frame: FrameType | None, event: Event) -> Decision | None:
        """What was decided here before."""
        codes = self.nests.codes
        while frame is not None:
            code = frame.f_code
            kept = codes.get(id(code))
            if not (kept.skipped if kept is not None else self.nests.of_code(code).skipped):
                break
            frame = frame.f_back
        if frame is None:
            return None
        back = frame.f_back
        # Two frames tell most events apart.
        outer = 0 if back is None else id(back.f_code)
        self._key = key = (id(code), frame.f_lasti, outer, event)
        decision = self._decisions.get(key)
        if decision is None:
            return None
        outermost = frame
        for lasti in decision.path:
            outermost = back  # type: ignore[assignment]
            if back is None or back.f_lasti != lasti:
                return None
            back = back.f_back
        return decision if id(outermost) == decision.frame_id else None

    def _place(self, phase: Phase, nest: Nest) -> int:
        """The id of the frame that runs the outermost loop of ``phase``, 0 where there is none. Remembers it."""
        loop = next((loop for loop in reversed(nest.loops) if loop in phase.loops), None)
        if loop is None:
            return 0
        phase.around.update(nest.loops[nest.loops.index(loop) + 1 :])
        frame_id = nest.frame_of(loop)
        self._remember(phase, frame_id, nest)
        return frame_id

    def _remember(self, phase: Phase | None, frame_id: int, nest: Nest) -> None:
        """Decide the same when the same event comes from the same place."""
        depth = [ident for ident, _ in nest.path].index(frame_id)
        if len(self._decisions) >= MAX_DECISIONS:
            self._decisions.clear()
        path = tuple(lasti for _, lasti in nest.path[1 : depth + 1])
        where = _where(phase, nest) if phase is not None else "outside"
        self._decisions[self._key] = Decision(phase, frame_id, path, where)

    def _batch_phase(self, frame: FrameType | None) -> tuple[Phase, int] | None:
        """The phase whose loop takes the batch of a loader, and the frame that runs it."""
        nest = self.nests.read(self.nests.innermost(frame))
        loop = self._batch_loop(nest)
        if loop is None:
            return None
        self._batches.add(loop)
        if nest.through[0]:
            self._ahead.add(loop)
        phase = self._by_loop.get(loop) or self._promote(loop, nest)
        if phase is None:
            self._remember(None, nest.frame_of(loop), nest)
            return None
        return phase, self._place(phase, nest)

    def _may_promote(self) -> bool:
        return self.current.kind in ("evaluate", "generate", "rollout")

    def _decide(self, event: Event, nest: Nest) -> Phase:
        if event == "step":
            return self._train_for(nest)
        if event == "training":
            return self._training_call(nest)
        return self._other_call(event, nest)

    def _train_around(self, nest: Nest) -> Phase | None:
        """The training that ``nest`` is in: one of its loops is the training's, or the innermost encloses it."""
        for loop in nest.loops:
            phase = self._by_loop.get(loop)
            if phase is not None and phase.kind == "train":
                return phase
        if not nest.loops:
            return self._by_loop.get(None)
        return self._train_inside(nest.loops[0])

    def _train_inside(self, loop: Loop) -> Phase | None:
        """The latest training whose loop is inside of ``loop``."""
        return next((phase for phase in reversed(self._trains) if loop in phase.around), None)

    def _train_for(self, nest: Nest) -> Phase:
        """The training whose optimiser stepped here."""
        train = self._train_around(nest)
        if train is None and nest.loops:
            train = self._convert(nest)
        if train is None:
            train = self._new("train", nest.loops[0] if nest.loops else None, nest)
            self._trains.append(train)
        if nest.loops:
            self._extend(train, nest)
        return train

    def _extend(self, train: Phase, nest: Nest) -> None:
        """The innermost loop is the training's. Loops around it that made a few calls so far are not phases."""
        inner = nest.loops[0]
        for loop in nest.loops:
            other = self._by_loop.get(loop)
            if other is not None and other is not train and other.kind != "train" and other.calls < PATIENCE:
                self._fold(other, train, whole=loop is inner)
        if inner not in train.loops and self._by_loop.get(inner, train) is train:
            if inner in train.around:
                train.loop = inner
                show_place(train, nest, inner)
            train.loops.add(inner)
            train.around.discard(inner)
            self._by_loop[inner] = train
            self._decisions.clear()

    def _convert(self, nest: Nest) -> Phase | None:
        """Make the phase of the innermost loop training. Phases of loops around it were its first calls."""
        phase = self._by_loop.get(nest.loops[0])
        if phase is None:
            return None
        self._make_train(phase)
        return phase

    def _training_call(self, nest: Nest) -> Phase:
        train = self._train_around(nest)
        if train is not None:
            return train
        if not nest.loops:
            return self.current
        loop = next((loop for loop in nest.loops if loop in self._batches), nest.loops[0])
        known = self._by_loop.get(loop)
        if known is not None:  # calls without gradients came first: an optimiser's step will tell
            if known.kind == "other":
                self._make_train(known)
            return known
        train = self._new("train", loop, nest)
        self._trains.append(train)
        return train

    def _other_call(self, event: Event, nest: Nest) -> Phase:
        if not nest.loops:
            known = self._by_loop.get(None)
            return known or (self._new("other", None, nest) if event == "user" else self.current)
        inner = nest.loops[0]
        known = self._by_loop.get(inner)
        train = known if known is not None and known.kind == "train" else self._train_inside(inner)
        if train is not None:
            return self._in_training(event, nest, train)
        kind = _kind(event, nest, inner)
        for loop in nest.loops:
            phase = self._by_loop.get(loop)
            if phase is not None and phase.kind == "train":
                break
            if phase is not None and (phase.by_batch or event == "user"):
                return phase
            if phase is not None and phase.kind == kind and (kind == "generate" or loop in self._batches):
                return phase
        if known is not None:
            return known
        if inner in self.current.around and not self._calls_around:
            self._calls_around = 1  # one call after the loop, with its result: not yet a phase
            return self.current
        return self._new(kind, inner, nest)

    def _in_training(self, event: Event, nest: Nest, train: Phase) -> Phase:
        """The phase of a call whose innermost loop is that of ``train``, or encloses it."""
        inner = nest.loops[0]
        if inner not in train.loops:
            # Between two rounds of the training.
            return self.current if self.current.kind == "epoch end" else train
        if event != "eval" or train.frame_id == nest.frame_of(inner):
            return train
        # The function that trains was called again, and has not trained yet: it evaluates with the same loop.
        phase = self._evaluations.get(inner)
        if phase is None or phase.folded_into is not None:
            phase = self._evaluations[inner] = self._new(_kind(event, nest, inner), inner, nest, keyed=False)
        return phase

    def _batch_loop(self, nest: Nest) -> Loop | None:
        """The loop that takes the batches of a loader: the innermost, beyond generators that pass them on."""
        return next((loop for loop, through in zip(nest.loops, nest.through, strict=True) if not through), None)

    def _promote(self, loop: Loop, nest: Nest) -> Phase | None:
        """Let the current phase be that of ``loop``, which asks for its second batch since the phase began."""
        phase = self.current
        if loop not in phase.around or not phase.calls or not self._may_promote():
            return None
        phase.loops = {loop}
        phase.loop = loop
        phase.frame_id = nest.frame_of(loop)
        phase.around = set()
        show_place(phase, nest, loop)
        self._by_loop[loop] = phase
        for inner in [inner for inner, other in self._by_loop.items() if other is phase and inner is not loop]:
            del self._by_loop[inner]
        self._decisions.clear()
        phase.restart()
        phase.by_batch = True
        name_phases(self.phases)
        self._listener.better_source(phase)
        return phase

    def _runs(self, phase: Phase, frame: FrameType | None) -> bool:
        """Whether the frame that runs the loop of ``phase`` is around ``frame``, and in the loop."""
        ident = phase.frame_id
        while frame is not None:
            if id(frame) == ident:
                if phase.owns_function:
                    return True
                lasti, code = frame.f_lasti, frame.f_code
                return any(loop.code is code and loop.holds(lasti) for loop in phase.loops)
            frame = frame.f_back
        return False

    def _leave(self, phase: Phase, frame: FrameType) -> None:
        phase.frame_id = 0
        nest = self.nests.read(self.nests.innermost(frame))
        around = (self._by_loop.get(loop) for loop in nest.loops)
        after = next((other for other in around if other is not None and other is not phase), None)
        if after is None:
            after = self._trains[-1] if self._trains else None
        if after is not None and after.kind == "train" and after.ended:
            after = self._pseudo_phase("epoch end")
        if after is not None:
            self._enter(after)


def _where(phase: Phase, nest: Nest) -> Where:
    if not phase.loops.intersection(nest.loops):
        return "outside"
    return "direct" if phase.kind == "train" or nest.loops[0] in phase.loops else "inside"


def _kind(event: Event, nest: Nest, inner: Loop) -> PhaseKind:
    if event == "user":
        return "other"
    words = {word for name in (*nest.between, inner.code.co_name) for word in name.lower().split("_")}
    if words & GENERATING:
        return "generate"
    return "rollout" if event == "call" else "evaluate"
