"""Which calls of modules need not be told: those of a training's steps, and where modules are called time and again."""

from __future__ import annotations

import sys
from types import FrameType

from syncscope.collect.phases.expected import FIRST, Expected
from syncscope.collect.phases.phase import Phase

QUIET = 32
"""So many calls in a row need not be told, where an optimiser tells the steps or they come from one place: the next one
may be in another loop."""

MORE = 8
"""Where a step of a training has more calls than any before, this part of them more pass in each from then on."""

SHORT = 64
"""Steps between two calls that tell that the program has left the training, on average, up to which the first call of
each step is told: to leave a phase and come back takes as much as fifty of those."""


def expect_calls(expected: Expected, train: Phase) -> None:
    """A step of ``train`` is over. Let as many calls in training pass in each of the next ones as its steps have."""
    left = train.left_for_calls
    short = left > 0 and train.steps < SHORT * (left + 1)
    expected.quiet = expected.usual = FIRST if short else train.calls_a_step


def let_calls_pass(expected: Expected, train: Phase) -> None:
    """A call in training was told, and is one of ``train``. Let those pass that its step still has, or a few more than
    steps had so far."""
    if expected.quiet < 0:
        expected.quiet = max(train.calls_a_step - 1, 0)
        return
    more = 1 + train.calls_a_step // MORE
    train.calls_a_step += more
    expected.quiet = more - 1
    if expected.usual >= 0:
        expected.usual = train.calls_a_step


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
