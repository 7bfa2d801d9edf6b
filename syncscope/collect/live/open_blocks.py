"""The ``with`` blocks that watch the program now."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from typing import Generic, TypeVar

Block = TypeVar("Block")


class OpenBlocks(Generic[Block]):
    """The open blocks, each of one thread and asyncio task or of all threads.

    ``start`` runs when the first block of the process opens. It yields the functions that undo it, which run in
    reverse when the last block closes.
    """

    def __init__(self, start: Callable[[], Iterator[Callable[[], None]]]) -> None:
        self._start = start
        self._lock = threading.Lock()
        self._count = 0
        self._own: ContextVar[tuple[Block, ...]] = ContextVar("syncscope_blocks", default=())
        self._everywhere: tuple[Block, ...] = ()
        self._undo: list[Callable[[], None]] = []

    @property
    def here(self) -> tuple[Block, ...]:
        """Those that watch this thread, the innermost last."""
        own, everywhere = self._own.get(), self._everywhere
        if not everywhere:
            return own
        return (*(block for block in everywhere if not any(block is mine for mine in own)), *own)

    def enter(self, block: Block, *, everywhere: bool = False) -> None:
        """Open ``block`` on this thread, or on all of them."""
        with self._lock:
            if self._count == 0:
                try:
                    self._undo.extend(self._start())
                except BaseException:
                    self._stop()
                    raise
            self._count += 1
            if everywhere:
                self._everywhere = (*self._everywhere, block)
        self._own.set((*self._own.get(), block))

    def leave(self, block: Block) -> None:
        """Close ``block``, on the thread and in the task that opened it."""
        self._own.set(_without(self._own.get(), block))
        with self._lock:
            self._everywhere = _without(self._everywhere, block)
            self._count -= 1
            if self._count == 0:
                self._stop()

    def _stop(self) -> None:
        while self._undo:
            self._undo.pop()()


def _without(blocks: tuple[Block, ...], block: Block) -> tuple[Block, ...]:
    """``blocks`` without the innermost ``block``."""
    for index in reversed(range(len(blocks))):
        if blocks[index] is block:
            return (*blocks[:index], *blocks[index + 1 :])
    return blocks
