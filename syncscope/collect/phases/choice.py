"""Which phase a program is in, from the loops that run and from what is called in them.

An optimiser's step makes its loop a training loop. A call of a module in training, with gradients, is part of the
training around it. Any other outermost call of a module is part of the training where its innermost loop is the
training's or encloses it; else the loop is a phase of its own.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from types import CodeType
from typing import Any, Literal

from syncscope.collect.phases.book import MAX_LOOPS, MAX_PHASES, Listener, PhaseBook
from syncscope.collect.phases.learning import has_weights, learns
from syncscope.collect.phases.loops import Loop
from syncscope.collect.phases.nests import Nest
from syncscope.collect.phases.phase import Phase
from syncscope.collect.phases.places import name_phases, show_place
from syncscope.collect.phases.rolls import Rolls
from syncscope.collect.phases.said_kinds import kind_of_call, said_kind, says_what
from syncscope.schema.counting import PhaseKind

PATIENCE = 32
"""Calls of a module in training, without an optimiser's step, before its calls count as steps."""

ROUND = 32
"""Steps of the training between two calls of a module outside of its loop, for each of those to be an evaluation: with
fewer they are part of the training."""

Event = Literal["step", "training", "call", "eval", "next", "user", "backward", "grad", "turn"]
"""What happened: an optimiser stepped; an outermost module was called in training with gradients, in training without,
or not in training; a loader gave a batch; the program said that a step ended; gradients were accumulated, or returned;
a loop of tensors alone began its next turn.
"""


class PhaseChoice(PhaseBook):
    """Chooses, and makes where there is none, the phase that an event belongs to."""

    def __init__(self, listener: Listener, clock: Callable[[], int] = time.perf_counter_ns) -> None:
        super().__init__(listener, clock)
        self._evaluations: dict[Loop, Phase] = {}
        """Evaluations with the loop of a training, by the loop."""
        self._by_call: dict[tuple[Loop, str], Phase] = {}
        """Phases with the loop of a library, by what the user calls of it."""
        self._at_once: dict[CodeType, Phase] = {}
        """Evaluations without a loop, by the function."""
        self._trained_at: set[tuple[CodeType, int] | None] = set()
        """Where modules in training were called."""
        self._learning: set[Loop] = set()
        """Loops inside of a training's in which modules in training were called: what else is called there is part of
        it."""
        self._rollouts: dict[Loop, Phase] = {}
        """Rollouts in a loop around that of a training, by the loop."""
        self._rolls = Rolls()
        self._module: Any = None
        """That was called last."""
        self._calls_around = 0
        """Calls in a loop around the current phase's, since an event in it."""

    def _may_promote(self) -> bool:
        return self.current.kind in ("evaluate", "generate", "rollout")

    def _decide(self, event: Event, nest: Nest) -> Phase:
        if event == "step":
            return self._train_for(nest)
        if event == "training":
            return self._training_call(nest)
        if event in ("backward", "grad"):
            return self._gradients_of(event, nest)
        if event == "turn":
            return self._turn_of(nest)
        return self._train_beside(event, nest) or self._other_call(event, nest)

    def _train_beside(self, event: Event, nest: Nest) -> Phase | None:
        """The training of a call without gradients, where modules in training are called in the same loop inside of
        its own."""
        if event != "call" or not nest.loops:
            return None
        inner = nest.loops[0]
        return self._train_around(nest) if inner in self._learning and inner not in self._by_loop else None

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
        if nest.loops:
            self._extend(train, nest)
        if not train.optimised:
            train.optimised = True
            name_phases(self.phases)
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
                train.ended = False  # the loader was one inside of the step
                show_place(train, nest, inner)
            train.loops.add(inner)
            train.around.discard(inner)
            self._by_loop[inner] = train
            self._forget_decisions()

    def _convert(self, nest: Nest) -> Phase | None:
        """Make the phase of the innermost loop training. Phases of loops around it were its first calls."""
        phase = self._by_loop.get(nest.loops[0])
        if phase is None:
            return None
        self._make_train(phase)
        return phase

    def _training_call(self, nest: Nest) -> Phase:
        train = self._train_around(nest)
        self._rolls.may_be = False
        if train is not None and nest.loops and nest.loops[0] in train.around:
            rollout = self._rollout_around("training", nest) if said_kind(nest, nest.loops[0]) == "rollout" else None
            if rollout is not None:
                return rollout
        beyond = self._by_loop.get(self._loop_beyond(nest, train)) if train is not None else None
        if beyond is not None and beyond.loop is not None and beyond.kind != "train":
            return beyond
        apart = train is not None and self._is_apart(nest, train)
        if len(self._trained_at) < MAX_LOOPS and not apart:
            self._trained_at.add(nest.inner)
        if train is not None and not apart:
            if len(self._learning) < MAX_LOOPS and not train.loops.isdisjoint(nest.loops[1:]):
                self._learning.add(nest.loops[0])
            return train
        if not nest.loops or (train is None and self._is_of_current(nest)):
            return self.current
        batched = (loop for loop in nest.loops if loop in self._batches and not apart)
        loop = next(batched, nest.loops[0])
        known = self._by_loop.get(loop)
        if known is not None:  # calls without gradients came first: an optimiser's step will tell
            if known.kind == "other" and learns(self._module):
                known.transforms = False
                self._make_train(known)
            return known
        kind = said_kind(nest, loop)
        if kind != "rollout" and not any(one.optimised for one in self._trains):
            kind = None
        if kind is None and not learns(self._module):
            phase = self._new("other", loop, nest)
            phase.transforms = phase.kind == "other"
            return phase
        return self._new(kind or "train", loop, nest)

    def _is_apart(self, nest: Nest, train: Phase) -> bool:
        """Whether a function says that it evaluates or generates, though with gradients, and is none of the steps of
        ``train``: it takes batches, or is called as seldom as no step is."""
        said = says_what(nest, train)
        if said not in ("evaluate", "generate"):
            return False
        inner = nest.loops[0]
        if said == "evaluate" and inner in self._batches:
            return True
        return inner not in self._learning and self._is_seldom(self._by_loop.get(inner), train)

    def _is_of_current(self, nest: Nest) -> bool:
        """Whether a metric, or a loss, is called in a loop inside of what evaluates."""
        goes_on = self._may_promote() and not self.current.loops.isdisjoint(nest.loops[1:])
        return goes_on and not has_weights(self._module)

    def _gradients_of(self, event: Event, nest: Nest) -> Phase:
        """The phase whose gradients were computed here. Those that are accumulated train, by the program's own rule."""
        phases = (self._by_loop.get(loop) for loop in nest.loops)
        known = next((phase for phase in phases if phase is not None), None) or self._train_around(nest)
        if known is not None and known.transforms and event == "backward":
            known.transforms = False
            self._make_train(known)
        if known is not None or not nest.loops:
            return known or self.current
        return self._new("train" if event == "backward" else "other", nest.loops[0], nest)

    def _turn_of(self, nest: Nest) -> Phase:
        """The phase whose loop, the innermost, turned. Nothing tells what it is for, unless a training is silent."""
        if not nest.loops:
            return self.current
        inner = nest.loops[0]
        known, silent = self._by_loop.get(inner), next((train for train in self._trains if train.silent), None)
        if known is None and silent is not None:
            self._extend(silent, nest)
            silent.loop, silent.around = inner, silent.around - silent.loops
            show_place(silent, nest, inner)
            self._share_functions()
            name_phases(self.phases)
            return silent
        return known or self._new("other", inner, nest)

    def _other_call(self, event: Event, nest: Nest) -> Phase:
        if not nest.loops:
            known = self._by_loop.get(None)
            if known is not None and known.evaluates and self.current.kind == "epoch end":
                return self.current
            if known is None and event == "user":
                return self._new("other", None, nest)
            over = known is None and self.current.kind == "train" and bool(self.current.loops)
            return self._pseudo_phase("epoch end") if over else known or self.current
        self._tell_calls_apart(nest)
        inner = nest.loops[0]
        known = self._by_loop.get(inner)
        train = known if known is not None and known.kind == "train" else self._train_inside(inner)
        if train is not None:
            beyond = self._loop_beyond(nest, train) if event == "call" else None
            if beyond is None:
                return self._in_training(event, nest, train)
            inner, known = beyond, self._by_loop.get(beyond)
        kind = self._kind_of(event, nest, inner, known)
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
        if inner in self.current.around and (not self._calls_around or self._ends_rollout(nest)):
            self._calls_around = 1  # one call after the loop, with its result: not yet a phase
            return self.current
        transforms = event == "call" and kind == "rollout" and not learns(self._module)
        phase = self._new("other" if transforms else kind, inner, nest)
        phase.rolls = event == "call" and kind != "generate" and not transforms
        phase.transforms = transforms
        return phase

    def _loop_beyond(self, nest: Nest, train: Phase) -> Loop | None:
        """The loop that makes an evaluation of what ``train`` does too: around the training's own inner loops, such as
        one over parts of a batch, or over metrics, and never around a call that trains. It is inside of the training's
        outer loop, or that of a known phase."""
        loops = nest.loops
        number = next((number for number, loop in enumerate(loops) if loop not in train.loops), 0)
        if not number or loops[number] in train.around:
            return None
        known = self._by_loop.get(loops[number])
        if train.loops.isdisjoint(loops[number:]) and (known is None or known.kind == "train"):
            return None
        return loops[number]

    def _kind_of(self, event: Event, nest: Nest, inner: Loop, known: Phase | None) -> PhaseKind:
        """What the loop ``inner`` does with a call of no training. ``known`` is its phase, which may now be told."""
        kind = kind_of_call(event, nest, inner)
        if kind == "rollout" and said_kind(nest, inner) is None and self._trains_around(nest):
            kind = "evaluate"  # every so many steps. In every step it is a rollout: see ``_judge_nested``
            if known is not None and known.kind == "rollout" and known.in_every_step_of is None:
                known.kind = kind  # what it did before the training was like it
                name_phases(self.phases)
        if known is not None and known.transforms and event != "user" and (event != "call" or learns(self._module)):
            known.transforms, known.kind = False, kind  # and here is the model
            known.rolls = event == "call"
            name_phases(self.phases)
        return kind

    def _tell_calls_apart(self, nest: Nest) -> None:
        """Let each loop of a library have the phase of what the user calls now: its ``fit`` and its ``test`` may share
        a loop."""
        for loop, user in zip(nest.loops, nest.user, strict=True):
            known = self._by_loop.get(loop)
            if known is None or known.kind == "train" or not known.called:
                continue
            if user is None or not user[2] or user[2] == known.called:
                continue
            if len(self._by_call) < MAX_LOOPS:
                self._by_call[loop, known.called] = known
            other = self._by_call.get((loop, user[2]))
            for each in [each for each, phase in self._by_loop.items() if phase is known]:
                del self._by_loop[each]
                if other is not None and other.folded_into is None:
                    self._by_loop[each] = other
            self._listen()
            self._forget_decisions()

    def _trains_around(self, nest: Nest) -> bool:
        """Whether a loop around the innermost is that of a training whose optimiser stepped."""
        phases = (self._by_loop.get(loop) for loop in nest.loops[1:])
        return any(phase is not None and phase.kind == "train" and phase.optimised for phase in phases)

    def _in_training(self, event: Event, nest: Nest, train: Phase) -> Phase:
        """The phase of a call whose innermost loop is that of ``train``, or encloses it."""
        inner = nest.loops[0]
        if inner not in train.loops:
            # Between two rounds of the training.
            rollout = self._rollout_around(event, nest)
            if rollout is not None:
                return rollout
            if self._ends_rollout(nest):
                return self.current
            if event == "eval" and nest.here is not None and self._is_seldom(self._at_once.get(nest.here[0]), train):
                return self._evaluation_at_once(nest)
            return self.current if self.current.kind == "epoch end" else train
        evaluates = nest.inner in self._trained_at or not self._goes_on(train, nest, inner)
        if event != "eval" or nest.inner in self._teachers or not evaluates:
            return train
        # What was trained here is called without, or the function that trains was called again and has not trained yet:
        # it evaluates with the same loop.
        train.evaluates_data |= self.current is train and not train.frame_id
        phase = self._evaluations.get(inner)
        if phase is None or phase.folded_into is not None:
            phase = self._evaluations[inner] = self._new(kind_of_call(event, nest, inner), inner, nest, keyed=False)
            phase.shares = phase.kind == "evaluate" and phase.loop is inner
        return phase

    def _ends_rollout(self, nest: Nest) -> bool:
        """Whether a function for rollouts, whose loop is over, wants the value of what it saw last."""
        inner, current = nest.loops[0], self.current
        return current.kind == "rollout" and inner in current.around and said_kind(nest, inner) == "rollout"

    def _goes_on(self, train: Phase, nest: Nest, loop: Loop) -> bool:
        """Whether the frame that runs ``loop`` is the one in which ``train`` trained last, not a later one."""
        return train.frame_id == nest.frame_of(loop) and train.called_from in (None, nest.called_from(loop))

    def _rollout_around(self, event: Event, nest: Nest) -> Phase | None:
        """The rollout whose loop is the innermost, in which the training runs now and then."""
        inner = nest.loops[0]
        phase = self._rollouts.get(inner) or self._by_loop.get(inner)
        if phase is not None and phase.kind == "rollout" and phase.folded_into is None:
            return phase
        if event not in ("call", "training") or nest.here is None or len(self._rollouts) >= MAX_LOOPS:
            return None
        came = self._rolls.came(nest.here, sum(train.steps for train in self._trains))
        if not came or kind_of_call(event, nest, inner) != "rollout":
            return None
        self._rollouts[inner] = phase = self._new("rollout", inner, nest, keyed=False)
        phase.rolls = True
        return phase

    def _is_seldom(self, known: Phase | None, train: Phase) -> bool:
        """Whether ``train`` makes many steps between two times of ``known``, or before its first one."""
        return self._steps_of(train) >= ROUND * (1 if known is None else known.times)

    def _evaluation_at_once(self, nest: Nest) -> Phase:
        """The evaluation of all data in one call, in a function without a loop. It has no steps."""
        assert nest.here is not None
        phase = self._at_once.get(nest.here[0])
        if phase is None:
            phase = self._new("evaluate", None, nest, keyed=False)
            if phase.loop is not None or len(self._at_once) >= MAX_PHASES:
                return phase  # there are too many phases
            self._at_once[nest.here[0]] = phase
        return phase

    def _batch_loop(self, nest: Nest) -> Loop | None:
        """The loop that takes the batches of a loader: the innermost, beyond generators that pass them on. One that
        evaluates, as ``sum(net(x) for x in loader)``, does not."""
        for loop, through in zip(nest.loops, nest.through, strict=True):
            known = self._by_loop.get(loop) if through else None
            if not through or (known is not None and known.kind != "train"):
                return loop
        return None

    def _promote(self, loop: Loop, nest: Nest) -> Phase | None:
        """Let the current phase be that of ``loop``, which asks for its second batch since the phase began."""
        phase = self.current
        if loop not in phase.around or not phase.calls or not self._may_promote():
            return None
        self._listen()
        phase.loops = {loop}
        phase.loop = loop
        phase.frame_id = nest.frame_of(loop)
        phase.around = set()
        show_place(phase, nest, loop)
        self._by_loop[loop] = phase
        for inner in [inner for inner, other in self._by_loop.items() if other is phase and inner is not loop]:
            del self._by_loop[inner]
        self._forget_decisions()
        phase.restart()
        phase.by_batch = True
        phase.source = "module"
        phase.steps = 1  # with the first batch
        name_phases(self.phases)
        self._listener.better_source(phase)
        return phase
