"""Calls from one place in a loop around that of a training: a policy acts there, and is trained now and then."""

from __future__ import annotations

from types import CodeType

ROLLS = 8
"""So many of them without a step of the training between them are a rollout."""


class Rolls:
    """Counts them."""

    def __init__(self) -> None:
        self.may_be = False
        """There were too few for a rollout so far: the next call tells more."""
        self._trained = 0
        """Steps of all trainings, and calls since the last one, by their places."""
        self._calls: dict[tuple[CodeType, int], int] = {}

    def came(self, place: tuple[CodeType, int], trained: int) -> bool:
        """A call came from ``place``, where all trainings have made so many steps. Returns whether it is a rollout."""
        if trained != self._trained:
            self._trained, self._calls = trained, {}
        self._calls[place] = self._calls.get(place, 0) + 1
        self.may_be = self._calls[place] < ROLLS
        return not self.may_be
