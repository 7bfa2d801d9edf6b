"""The ``with`` blocks that watch the program now."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from typing import Generic, TypeVar

Block = TypeVar("Block")
Entry = TypeVar("Entry")


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
        self._everywhere: tuple[tuple[Block, int | None], ...] = ()
        """Those that were not opened by a ``with``, or are of all threads, with the only thread that they watch."""
        self._undo: list[Callable[[], None]] = []

    @property
    def here(self) -> tuple[Block, ...]:
        """Those that watch this thread, the innermost last."""
        own, everywhere = self._own.get(), self._everywhere
        if not everywhere:
            return own
        ident = threading.get_ident()
        others = (block for block, thread in everywhere if thread in (None, ident))
        return (*(block for block in others if not any(block is mine for mine in own)), *own)

    def enter(self, block: Block, *, everywhere: bool = False) -> None:
        """Open ``block`` on this thread, or on all of them."""
        self._open(((block, None),) if everywhere else ())
        self._own.set((*self._own.get(), block))

    def enter_for_good(self, block: Block, thread: int | None) -> None:
        """Open ``block`` on the thread with this ident, or on all, in whatever task it is, until the process ends."""
        self._open(((block, thread),))

    def _open(self, everywhere: tuple[tuple[Block, int | None], ...]) -> None:
        with self._lock:
            if self._count == 0:
                try:
                    self._undo.extend(self._start())
                except BaseException:
                    self._stop()
                    raise
            self._count += 1
            self._everywhere += everywhere

    def leave(self, block: Block) -> None:
        """Close ``block``, on the thread and in the task that opened it."""
        self._own.set(_without(self._own.get(), block))
        with self._lock:
            mine = [entry for entry in self._everywhere if entry[0] is block]
            if mine:
                self._everywhere = _without(self._everywhere, mine[-1])
            self._count -= 1
            if self._count == 0:
                self._stop()

    def _stop(self) -> None:
        while self._undo:
            self._undo.pop()()


def _without(blocks: tuple[Entry, ...], block: Entry) -> tuple[Entry, ...]:
    """``blocks`` without the innermost ``block``."""
    for index in reversed(range(len(blocks))):
        if blocks[index] is block:
            return (*blocks[:index], *blocks[index + 1 :])
    return blocks
