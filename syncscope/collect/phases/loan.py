"""Calls that pass with the least that tells them from others, and are counted when somebody asks."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator
from itertools import repeat
from typing import Any

NO_CALLS: Iterator[None] = repeat(None, 0)


class Loan:
    """So many calls of one module may pass a hook, or none.

    ``lend`` gives the hook what it knows the module by, ``None`` where nothing may pass, and an iterator, which is in C
    and counts them: that touches less memory than a number in an object does.
    """

    __slots__ = ("calls", "count", "lend")

    def __init__(self, lend: Callable[[Any, Iterator[None]], None]) -> None:
        self.lend = lend
        self.calls, self.count = NO_CALLS, 0

    def begin(self, known_by: Any, count: int) -> None:
        """Let ``count`` calls of the module pass that is ``known_by`` this."""
        self.calls, self.count = repeat(None, count), count
        self.lend(known_by, self.calls)

    def end(self) -> int:
        """Let nothing pass any more. Returns how many passed."""
        if self.used < self.count:
            self.lend(None, NO_CALLS)
        return self.used

    @property
    def used(self) -> int:
        """How many passed so far."""
        return self.count - operator.length_hint(self.calls)
