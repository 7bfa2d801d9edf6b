"""What ends the steps of a phase: an optimizer, a module, a line that asks for gradients, or a loop that turns."""

from __future__ import annotations

import time
import weakref
from collections.abc import Callable
from types import CodeType, FrameType
from typing import Any

from syncscope.collect.paths import Paths
from syncscope.collect.phases.book import MAX_LOOPS, Listener
from syncscope.collect.phases.phase import IN_OTHER_TURNS, Phase, StepPlace
from syncscope.collect.phases.placing import PhasePlacing
from syncscope.schema.counting import CountedSource

TAKEOVER = 64
"""Steps of other optimisers, without one of the chosen optimiser, after which another is chosen."""

MAX_SEEN = 1024

SPOKEN = 32
"""Calls of an optimizer whose steps a CUDA graph made so far, before they may be steps again."""


class GradientPlace:
    """A line that asks for gradients, and how often it did: the owner of the steps that end there."""

    times = 0


class StepSources(PhasePlacing):
    """Chooses what ends the steps of a phase, and says whether one ends."""

    def __init__(
        self, listener: Listener, paths: Paths | None = None, clock: Callable[[], int] = time.perf_counter_ns
    ) -> None:
        super().__init__(listener, paths, clock)
        self._gradient_places: dict[tuple[CodeType, int] | None, GradientPlace] = {}

    def _is_boundary(self, phase: Phase, source: CountedSource, caller: Any, place: StepPlace | None = None) -> bool:
        """Whether steps of ``phase`` end with those of ``caller``: the first that came twice, until it is gone, or
        another comes twice without it since the loop began again, or once where it has ended steps before."""
        chosen = phase.source == source
        owner = phase.owner() if chosen and phase.owner is not None else None
        if owner is not caller:
            if chosen and self.expected.most != self.expected.left:  # it came, unheard
                self.hear()
                self._owner_came(phase)
            phase.since_owner += 1
            again = phase.times != phase.owned or (source == "optimizer" and phase.since_owner >= TAKEOVER)
            if again and chosen and source == "module" and phase.was_owned_by(caller, place):
                pass  # a copy of the model, say, that is evaluated in turn with it
            elif not self._seen_before(phase, source, caller, place) or (owner is not None and not again):
                return False
            self._choose(phase, source, caller, place)
        elif place != phase.owner_at and not self._takes_turn(phase, place):
            return False
        self._owner_came(phase)
        return True

    def _takes_turn(self, phase: Phase, place: StepPlace | None) -> bool:
        """The module whose calls end steps is called at another ``place``: a further call in the same step, with and
        without a condition, say. Returns whether a step ends there all the same: it is another branch of the loop, or
        came twice without the other, and ends the steps from now on."""
        steps = phase.steps + (self.expected.unheard if phase is self.current else 0)
        latest = phase.called_at_too.get(place)
        if latest == IN_OTHER_TURNS:
            return True
        if latest == steps:
            phase.owner_at = place
            phase.called_at_too.clear()
            phase.steps += 1  # the call before was one, too
            return True
        if len(phase.called_at_too) >= MAX_SEEN:
            phase.called_at_too.clear()
        phase.called_inside = True  # quick looks do not tell places apart
        owner_at = phase.owner_at
        if latest is None and place is not None and owner_at is not None and place.is_other_branch_of(owner_at):
            phase.called_at_too[place] = IN_OTHER_TURNS
            return True
        phase.called_at_too[place] = steps
        return False

    @staticmethod
    def _owner_came(phase: Phase) -> None:
        phase.since_owner, phase.owned = 0, phase.times
        phase.seen.pop(phase.source, None)

    def _seen_before(self, phase: Phase, source: CountedSource, owner: Any, place: StepPlace | None = None) -> bool:
        seen = phase.seen.setdefault(source, {})
        if len(seen) >= MAX_SEEN:
            seen.clear()
        count = seen.get((id(owner), place), 0) + 1
        seen[id(owner), place] = count
        return count >= 2

    def _choose(self, phase: Phase, source: CountedSource, owner: Any, place: StepPlace | None = None) -> None:
        self._listen()
        before, seen = phase.source, phase.seen.get(source, {}).get((id(owner), place), 0)
        if before not in ("none", source):
            phase.restart()
        phase.steps += max(seen - 1, 0)  # until now nobody knew that these were its steps
        phase.source = source
        phase.owner_at = place
        phase.called_at_too.clear()
        if before not in ("none", source):
            self._let(self._listener.better_source, phase)
        try:
            phase.owner = weakref.ref(owner) if owner is not None else None
        except TypeError:
            phase.owner = None
        phase.remember_owner()

    def _calls_seldom(self, phase: Phase) -> bool:
        """Whether a module is called in fewer than half of the turns of its loop: they stay its steps."""
        turns = self._steps_of(phase)
        if not phase.calls_in_turns:
            phase.first_call_at = turns
        phase.calls_in_turns += 1
        return 2 * phase.calls_in_turns < turns - phase.first_call_at

    def _speaks_seldom(self, phase: Phase) -> bool:
        """Whether an optimiser whose steps a CUDA graph makes is called to capture another graph, or no more than twice
        in each turn of the loop: the turns stay its steps."""
        turns = self._steps_of(phase)
        if not phase.spoken:
            phase.first_spoken_at = turns
        phase.spoken += 1
        return phase.spoken < SPOKEN or phase.spoken <= 2 * (turns - phase.first_spoken_at)

    def _place_of(self, frame: FrameType | None) -> GradientPlace:
        """What stands for the program's line that asked for gradients."""
        key = self._call_place(frame)
        if len(self._gradient_places) >= MAX_LOOPS:
            self._gradient_places.clear()
        return self._gradient_places.setdefault(key, GradientPlace())

    def _step_place(self, phase: Phase, frame: FrameType | None) -> StepPlace | None:
        """The same, and where the loop of ``phase`` stands."""
        inner = outer = self.nests.innermost(frame)
        if inner is None:
            return None
        while outer is not None and id(outer) != phase.frame_id:
            outer = outer.f_back
        around = (outer.f_code, outer.f_lasti) if outer is not None else (None, 0)
        return StepPlace(inner.f_code, inner.f_lasti, *around)
