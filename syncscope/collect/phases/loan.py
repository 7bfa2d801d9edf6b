"""Calls that pass with the least that tells them from others, and are counted when somebody asks."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator
from itertools import repeat
from typing import Any

NO_CALLS: Iterator[None] = repeat(None, 0)


class Loan:
    """So many calls of one module may pass a hook, or none.

    ``lend`` gives the hook the module, ``None`` where nothing may pass, and an iterator, which is in C and counts them:
    that touches less memory than a number in an object does.
    """

    __slots__ = ("_calls", "_count", "_lend")

    def __init__(self, lend: Callable[[Any, Iterator[None]], None]) -> None:
        self._lend = lend
        self._calls, self._count = NO_CALLS, 0

    def begin(self, module: Any, count: int) -> None:
        """Let ``count`` calls of ``module`` pass."""
        self._calls, self._count = repeat(None, count), count
        self._lend(module, self._calls)

    def end(self) -> int:
        """Let nothing pass any more. Returns how many passed."""
        used = self._count - operator.length_hint(self._calls)
        if used < self._count:
            self._lend(None, NO_CALLS)
            used = self.used
        return used

    @property
    def used(self) -> int:
        """How many passed so far."""
        return self._count - operator.length_hint(self._calls)
