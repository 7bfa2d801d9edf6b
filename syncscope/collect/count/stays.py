"""How long the program stays in a phase each time, so that the last step of the next stay is known before it begins."""

from __future__ import annotations

FEWEST = 4
"""Steps of a stay whose last one is foreseen."""


class Stays:
    """Steps from entering a phase to leaving it.

    The last step of a stay is unlike the others. What the program does before the next phase begins is part of it: it
    computes advantages after a rollout, or reads the losses of an update. Where steps are drawn it would hardly ever be
    counted, or stand for many. It is foreseen where two stays in a row had the same number of steps.
    """

    def __init__(self) -> None:
        self._stays = self._had_steps = True
        self._entered = self._length = 0
        self._alike = False
        self._entered_ns = self.round_ns = 0
        """When this stay began, and the time from the begin of the one before to that. Those without a step are part of
        the one before."""
        self.last_at: int | None = None
        """The number of steps of the phase at which the last one of this stay begins; ``None`` where it is not to be
        counted by itself."""

    def enter(self, steps: int, now_ns: int) -> int:
        """The program enters the phase, which had so many steps. Returns how many this stay is likely to have, 0 where
        that is not known."""
        self._stays, self._entered, self.last_at = True, steps, None
        if self._had_steps:
            self.round_ns, self._entered_ns, self._had_steps = now_ns - self._entered_ns, now_ns, False
        return self._length if self._alike else 0

    def leave(self, steps: int) -> None:
        """The program leaves the phase, which had so many steps."""
        length = steps - self._entered
        if self._stays and length:
            self._alike = length == self._length and length >= FEWEST
            self._length = length
            self._had_steps = True
        self._stays = False

    def begin_again(self, steps: int) -> None:
        """The phase has so many steps from now on, because something else counts as one."""
        self._stays, self._entered, self._length, self._alike, self.last_at = True, steps, 0, False, None

    def until_last(self, steps: int) -> int | None:
        """Steps until the last one of this stay begins. The phase has ``steps``."""
        return self.last_at - steps if self.last_at is not None and self.last_at >= steps else None
