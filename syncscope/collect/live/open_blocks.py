"""The ``with`` blocks that watch the program now."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from typing import Generic, TypeVar

Block = TypeVar("Block")


class OpenBlocks(Generic[Block]):
    """The open blocks of each thread, outermost first.

    ``start`` runs when the first block of the process opens. It yields the functions that undo it, which run in
    reverse when the last block closes.
    """

    def __init__(self, start: Callable[[], Iterator[Callable[[], None]]]) -> None:
        self._start = start
        self._lock = threading.Lock()
        self._count = 0
        self._local = threading.local()
        self._undo: list[Callable[[], None]] = []

    @property
    def of_this_thread(self) -> list[Block]:
        if not hasattr(self._local, "blocks"):
            self._local.blocks = []
        return self._local.blocks  # type: ignore[no-any-return]

    def enter(self, block: Block) -> None:
        """Open ``block`` on this thread."""
        with self._lock:
            if self._count == 0:
                try:
                    self._undo.extend(self._start())
                except BaseException:
                    self._stop()
                    raise
            self._count += 1
        self.of_this_thread.append(block)

    def leave(self) -> None:
        """Close this thread's innermost block."""
        self.of_this_thread.pop()
        with self._lock:
            self._count -= 1
            if self._count == 0:
                self._stop()

    def _stop(self) -> None:
        while self._undo:
            self._undo.pop()()
