"""The phases of a run: making, entering and joining them, their time and their steps."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from types import CodeType
from typing import Any, Protocol

from syncscope.collect.phases.expected import NONE, Expected
from syncscope.collect.phases.loops import Loop, codes_read
from syncscope.collect.phases.nests import Nest
from syncscope.collect.phases.phase import Phase
from syncscope.collect.phases.places import name_phases, show_place
from syncscope.collect.phases.quiet_places import QuietPlaces, expect_calls
from syncscope.schema.counting import STEPLESS, PhaseKind

MAX_PHASES = 64
"""Loops that become phases. Further ones share the last phase of their kind."""

MAX_LOOPS = 4096
"""Loops remembered to take batches, or to enclose a phase."""

FEW = 8
"""Calls in a training step: with fewer a loop inside of it is part of it."""

SURE = 3
"""Training steps in a row that tell whether a loop inside of them is part of them."""

UNHEARD_NS = 200_000_000
"""Steps pass unheard for so long at most: the listener is told of them together. Telling it takes some forty calls of
Python's, 0.1 to 0.2 ms out of cold caches: 0.1 % of this time."""

MOST_UNHEARD = 1024

DISTURBED, DISTURBED_NS = 10.0, 100_000.0
"""An event that takes so many times as long as usual, or so long, was disturbed by another process: what it took beyond
that is not believed. To read the loops of a function may take longer, ..."""

MEMORY = 0.05
"""... and has no part in what is usual. Weight of an event in that."""

CALLS_A_STEP = 4
"""More calls of modules than this in a step are told, in part, where the program tells its steps, or they are so short
that following them takes much."""

ACQUAINTED = 16
"""The first steps of a phase are all heard."""


class Listener(Protocol):
    """What the tracker tells of."""

    def stepped(self, phase: Phase) -> int:
        """A step of ``phase`` ended, maybe with others before it. Returns how many more may end before it must hear of
        the next one. May raise ``SystemExit``."""

    def changed(self, before: Phase, after: Phase) -> None:
        """The program left ``before`` for ``after``."""

    def folded(self, phase: Phase, into: Phase) -> None:
        """``phase`` turned out to be part of ``into``."""

    def better_source(self, phase: Phase) -> None:
        """Steps of ``phase`` are counted by a better source from now on."""


class PhaseBook:
    """All phases, and which one is current. ``clock`` counts nanoseconds."""

    def __init__(self, listener: Listener, clock: Callable[[], int] = time.perf_counter_ns) -> None:
        self._clock = clock
        self.phases: list[Phase] = []
        self.current = self._make("start")
        self.current.times = 1
        self._listener = listener
        self._by_loop: dict[Loop | None, Phase] = {}
        self._trains: list[Phase] = []
        self._pseudo: dict[PhaseKind, Phase] = {}
        self._teachers: set[tuple[CodeType, int] | None] = set()
        """Where each step of a training calls a module that is not in training."""
        self._batches: set[Loop] = set()
        """Loops that take batches of a loader."""
        self._ahead: set[Loop] = set()
        """Of those, the loops whose batches come through a generator, which may read ahead."""
        self._decisions: dict[Any, Any] = {}
        """What was decided of events, by their places; void once a phase is made or joined."""
        self._latest: dict[str, Any] = {}
        """The decision that held for the latest event of each kind."""
        self._now = self._clock()
        self.expected = Expected(clock)
        self.quiet_places = QuietPlaces()
        """Where calls of modules need not be told, until a step or another phase is."""
        self.followed_ns = 0.0
        """What following took so far, as the steps tell that were timed, without what the listener did."""
        self._listener_ns = 0
        """What the listener did since ``begin_event``."""
        self._codes_read, self._usual_ns = 0, 0.0
        """Codes whose loops were read before that; how long events take where none is read."""
        self._draw = random.Random()  # the program's own random numbers stay as they are
        self.heard = 0
        """Steps that the listener was told of."""

    @property
    def unheard(self) -> int:
        """Steps of the current phase that ended unheard, and are not in its ``steps`` yet."""
        return self.expected.unheard

    def _steps_of(self, phase: Phase) -> int:
        """The steps of ``phase`` so far, with those that ended unheard."""
        return phase.steps + (self.expected.unheard if phase is self.current else 0)

    def tell_next(self) -> None:
        """Let the next step not pass unheard. From any thread."""
        self.expected.tell_next()

    def _listen(self) -> None:
        """Let no further step pass unheard, and add those that did."""
        expected = self.expected
        expected.take_back()
        if expected.left < expected.timed:
            self.current.followed(expected.timed_ns)
        if expected.most != expected.left:
            self.hear()
        expected.tell_all()
        self.quiet_places.clear()

    def begin_event(self) -> int:
        """Somebody is about to tell of an event. Returns the time, for ``end_event``."""
        self.expected.take_back()
        self._listener_ns, self._codes_read = 0, codes_read()
        return self._clock()

    def end_event(self, begin_ns: int) -> None:
        """All of the event was told. What the listener did of it, such as to end a window, is not following. Nor is the
        time in which another process had the processor: an event that takes much longer than others did not work."""
        took_ns: float = self._clock() - begin_ns - self._listener_ns
        if self._codes_read == codes_read():
            took_ns = min(took_ns, max(DISTURBED * self._usual_ns, DISTURBED_NS))
            self._usual_ns += MEMORY * (took_ns - self._usual_ns)
        self.followed_ns += took_ns

    def _let(self, tell: Callable[..., Any], *phases: Phase) -> Any:
        """Let the listener hear of ``phases``. What it does is no part of the current phase's next step either."""
        begin = self._clock()
        try:
            return tell(*phases)
        finally:
            took = self._clock() - begin
            self._listener_ns += took
            self.current.step_ns -= took

    def hear(self) -> None:
        """Add the steps that passed unheard."""
        self.expected.take_back()
        expected, phase, left = self.expected, self.current, self.expected.left
        count, expected.most = expected.most - left, left
        phase.steps += count
        phase.calls += count
        self.followed_ns += count * phase.passing_ns
        phase.timed = False  # its time since the last boundary is that of several steps

    def settle(self, now_ns: int | None = None) -> None:
        """Bring the phases' times up to ``now_ns`` of the clock."""
        now = self._clock() if now_ns is None else now_ns
        passed, self._now = now - self._now, now
        phase = self.current
        phase.time_ns += passed
        phase.step_ns += passed
        if phase.in_every_step_of is not None:
            phase.in_every_step_of.step_ns += passed

    def _make(self, kind: PhaseKind, loop: Loop | None = None) -> Phase:
        phase = Phase(len(self.phases), kind, loop)
        phase.join(self.phases)
        self.phases.append(phase)
        return phase

    def _new(self, kind: PhaseKind, loop: Loop | None, nest: Nest, keyed: bool = True) -> Phase:
        if len(self.phases) >= MAX_PHASES:
            alike = (phase for phase in reversed(self.phases) if phase.kind == kind and not phase.folded_into)
            last = next(alike, None)
            if last is not None and keyed and loop is not None and len(self._by_loop) < MAX_LOOPS:
                last.loops.add(loop)  # its steps count, as its waits do
                self._by_loop[loop] = last
            return last or self._pseudo_phase("other")
        phase = self._make(kind, loop)
        show_place(phase, nest, loop)
        phase.by_batch = keyed and loop in self._batches and loop not in self._ahead
        self._share_functions()
        if kind == "train":
            self._trains.append(phase)
        if keyed:
            self._by_loop[loop] = phase
        name_phases(self.phases)
        self._forget_decisions()
        return phase

    def _forget_decisions(self) -> None:
        self._decisions.clear()
        self._latest.clear()
        self.expected.frame_id = 0

    def _share_functions(self) -> None:
        codes = [phase.loop.code for phase in self.phases if phase.loop is not None]
        for phase in self.phases:
            if phase.loop is not None:
                code = phase.loop.code
                phase.owns_function = not code.co_name.startswith("<") and codes.count(code) == 1

    def _pseudo_phase(self, kind: PhaseKind) -> Phase:
        if kind not in self._pseudo:
            self._pseudo[kind] = self._make(kind)
        return self._pseudo[kind]

    def _begin(self, phase: Phase, frame_id: int) -> None:
        phase.frame_id = frame_id
        phase.called_from = None
        if phase.owned == phase.times:
            phase.forget_seen()
        phase.times += not phase.one_by_one

    def _enter(self, phase: Phase) -> None:
        before = self.current
        self.expected.trains = False
        self._listen()
        self.settle()
        if before.loops and not (before.loops & phase.around) and phase.loops:
            before.frame_id = 0  # its loop is not around the next phase's: it is over
        if phase.in_every_step_of is not before:
            before.intruder = before.intruder or phase.kind
        if phase.loop is None:
            phase.times += self._comes_anew(phase)
        phase.timed &= phase.source != "turn"  # those are told at their ends: this one began elsewhere
        self.current = phase
        self._let(self._listener.changed, before, phase)

    def _comes_anew(self, phase: Phase) -> bool:
        """Whether ``phase``, which is not that of a loop, is entered for another time: what is saved tensor by tensor
        is one checkpoint, and an epoch's end in the midst of which the program saves a model is one end."""
        if phase.kind not in STEPLESS:
            return True
        made = sum(one.steps for one in self.phases)
        anew, phase.made_before = phase.made_before != made, made
        return anew and phase.kind != "start"

    def _make_train(self, phase: Phase) -> None:
        self._listen()
        phase.kind = "train"
        self._trains.append(phase)
        self._forget_decisions()
        name_phases(self.phases)
        if phase.source != "user":
            phase.restart()
            self._let(self._listener.better_source, phase)

    def _count_batch(self, phase: Phase) -> None:
        """The first call after each batch is between two steps."""
        if phase.counted_batch == phase.batches:
            return
        phase.counted_batch = phase.batches
        expected = self.expected
        if expected.left and expected.event == "batch" and phase is self.current:
            expected.left -= 1
            phase.calls -= 1  # ``hear`` adds it, as of calls that nobody told
            return
        if phase.source == "none":  # until now nobody knew that its batches were its steps
            phase.steps += phase.batches
        phase.source = "module"
        self._boundary(phase, "batch", None)

    def _boundary(self, phase: Phase, event: str, owner: Any) -> None:
        """A step of ``phase`` ended, with ``event`` of ``owner``. As many as the listener lets pass may now end
        unheard, but of those that are heard every other one is timed."""
        self._listen()
        self.settle()
        timed, length = phase.timed, phase.step_ns
        if timed:
            phase.lengths.add(length)
        phase.step_ns = 0
        phase.timed = True
        phase.steps += 1
        self.heard += 1
        if phase.kind == "train":
            self._judge_nested(phase)
            self.expected.trains = phase is self.current and phase.source in ("optimizer", "user")
            expect_calls(self.expected, phase)
        ended, unheard = self._now, 0
        try:
            unheard = self._listener.stepped(phase)
        finally:
            phase.intruder = None
            listener_ns = self._clock() - ended
            phase.step_ns -= listener_ns  # what the listener does is no part of the next step
            self._listener_ns += listener_ns
        if timed and phase is self.current and phase.steps >= ACQUAINTED:
            left = min(unheard, MOST_UNHEARD, UNHEARD_NS // max(length, 1))
            mask = phase.look_seldom(length)
            looks = left // (mask + 1)
            drawn = (mask + 1) * (1 + int(looks * self._draw.random())) if looks else NONE
            self.expected.expect(left, drawn, event, id(owner), self._latest.get(event))
            self.expected.mask = mask
            if phase.source == "user":
                self.expected.passes = CALLS_A_STEP * left
            elif phase.seldom and not (phase.shares or phase.by_batch):  # the first call after each batch is heard
                self.expected.others = self.expected.passes = CALLS_A_STEP

    def _judge_nested(self, train: Phase) -> None:
        """Fold loops inside of each step of ``train`` that call little; mark those that call much."""
        for phase in self.phases:
            if not (phase.calls or phase.few or phase.many) or phase.kind == "train" or phase.in_every_step_of:
                continue
            if phase.shares and phase.loops & train.loops:
                self._judge_shared(phase, train)
                continue
            if not phase.around & train.loops:
                continue
            calls, phase.calls = phase.calls, 0
            phase.few = phase.few + 1 if 0 < calls < FEW else 0
            phase.many = phase.many + 1 if calls >= FEW else 0
            if phase.few >= SURE:
                self._fold(phase, train)
            elif phase.many >= SURE:
                phase.in_every_step_of = train
                if phase.rolls and phase.kind == "evaluate":
                    phase.kind = "rollout"
                    name_phases(self.phases)

    def _judge_shared(self, phase: Phase, train: Phase) -> None:
        """An evaluation is not between two steps time and again: what calls there is a teacher."""
        calls, phase.calls = phase.calls, 0
        phase.few = phase.few + 1 if calls else 0
        if phase.few < SURE or len(self._teachers) >= MAX_LOOPS:
            return
        phase.few = 0
        self._listen()
        self._teachers.add(phase.last_called_at)
        self._forget_decisions()
        if phase.last_called_at == phase.called_at:
            self._fold(phase, train)

    def _fold(self, phase: Phase, into: Phase, whole: bool = True) -> None:
        """Let ``phase`` be part of ``into``: with its loops, or with the calls made so far only."""
        self._listen()
        self.settle()
        phase.folded_into = into
        into.time_ns += phase.time_ns
        for loop in [loop for loop, other in self._by_loop.items() if other is phase]:
            del self._by_loop[loop]
            if whole:
                self._by_loop[loop] = into
                into.loops |= phase.loops
        phase.time_ns = phase.steps = phase.times = phase.frame_id = phase.calls = 0
        phase.loops = set()
        phase.around = set()
        self._forget_decisions()
        name_phases(self.phases)
        self._let(self._listener.folded, phase, into)
        if self.current is phase:
            self._enter(into)
