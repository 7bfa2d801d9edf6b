"""What waits in the first turn of a loop, before the program does anything that tells that it is one."""

from __future__ import annotations

from typing import Any

from syncscope.collect.count.phase import Tracker
from syncscope.collect.count.phase_tally import PhaseTally
from syncscope.collect.count.places import Place
from syncscope.collect.sites.stacks import Stacks


def move_first_turn(start: PhaseTally, state: PhaseTally, stacks: Stacks, tracker: Tracker) -> None:
    """Let the first step of ``state``, where it begins, have what was counted at the ``start`` in stacks inside of its
    loop: the batch that came to the device before the model was called. Steps that a call begins have nothing before
    it, and where many turns came before their loop was known, they are no part of one step."""
    phase = state.phase
    if state.stepless or state.told_at_begin or phase.steps or tracker.begins_late:
        return

    def is_inside(stack: int) -> bool:
        return any(tracker.is_in_loop(phase.number, code, lasti) for code, lasti in stacks.instructions(stack))

    def move(mine: dict[Any, Place], theirs: dict[Any, Place]) -> None:
        for key, place in list(theirs.items()):
            if key not in mine and not place.count and is_inside(place.stack):
                mine[key] = theirs.pop(key)
                place.begin_in(phase.steps)

    move(state.warned, start.warned)
    move(state.called, start.called)
