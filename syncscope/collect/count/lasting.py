"""Steps that last: the same one is under way from one look to the next, and for much longer than others."""

from __future__ import annotations

from collections.abc import Callable

from syncscope.collect.count.phase_tally import PhaseTally

UNUSUAL = 2.0
"""A step lasts, and is unlike the others, where it takes so many times as long as they do on average."""


class Lasting:
    """Looks at the step that is under way now and then. ``clock`` counts nanoseconds."""

    def __init__(self, clock: Callable[[], int]) -> None:
        self._clock = clock
        self._step = -1, -1
        """The phase and its step at the last look, ..."""
        self._since_ns = 0
        """... and when a look first saw them."""

    def since_ns(self, state: PhaseTally, step: int) -> int | None:
        """When this first saw ``step`` of the phase of ``state``, which is under way; ``None`` if it does not last."""
        same, since_ns = (state.phase.number, step) == self._step, self._since_ns
        if not state.stepless:  # a save or load in the midst of a step is no other step
            if not same:
                self._since_ns = self._clock()
            self._step = state.phase.number, step
        if same and self._clock() - since_ns >= UNUSUAL * state.sampling.averages.length:
            return since_ns
        return None
