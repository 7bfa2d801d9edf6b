"""Where modules are called time and again in a phase, so that few of those calls need be told."""

from __future__ import annotations

import sys
from types import FrameType

QUIET = 32
"""So many calls in a row need not be told, where an optimiser tells the steps or they come from one place: the next one
may be in another loop."""


class QuietPlaces:
    """How many further calls pass from each place."""

    def __init__(self) -> None:
        self._left: dict[tuple[int, int, str], int] = {}

    def add(self, frame: FrameType, event: str) -> None:
        """Let the next calls pass that tell ``event`` where ``frame`` stands, of modules whatever they are."""
        self._left[id(frame.f_code), frame.f_lasti, event] = QUIET

    def passes(self, event: str, around: int) -> bool:
        """Whether a call passes that is made so many frames ``around`` this method's."""
        if not self._left:
            return False
        frame = sys._getframe(around)
        key = id(frame.f_code), frame.f_lasti, event
        left = self._left.get(key, 0)
        if left:
            self._left[key] = left - 1
        return left > 0

    def clear(self) -> None:
        """Let nothing pass any more."""
        self._left.clear()
