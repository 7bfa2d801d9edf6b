"""Blocks of code that are watched while they run."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from typing import Generic, TypeVar

Block = TypeVar("Block")


class Blocks(Generic[Block]):
    """The open blocks of each thread, outermost first.

    ``begin`` is run when the first block of the process opens, and yields what undoes it when the last one closes.
    """

    def __init__(self, begin: Callable[[], Iterator[Callable[[], None]]]) -> None:
        self._begin = begin
        self._lock = threading.Lock()
        self._open = 0
        self._local = threading.local()
        self._undo: list[Callable[[], None]] = []

    @property
    def here(self) -> list[Block]:
        """Those of this thread."""
        if not hasattr(self._local, "blocks"):
            self._local.blocks = []
        return self._local.blocks  # type: ignore[no-any-return]

    def enter(self, block: Block) -> None:
        with self._lock:
            if self._open == 0:
                try:
                    self._undo.extend(self._begin())
                except BaseException:
                    self._end()
                    raise
            self._open += 1
        self.here.append(block)

    def leave(self) -> None:
        """Close this thread's innermost block."""
        self.here.pop()
        with self._lock:
            self._open -= 1
            if self._open == 0:
                self._end()

    def _end(self) -> None:
        while self._undo:
            self._undo.pop()()
