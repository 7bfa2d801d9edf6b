"""The ``with`` blocks that watch the program now."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from typing import Generic, TypeVar

from syncscope.collect.sites.threads import live_threads

Block = TypeVar("Block")


class _Entry(Generic[Block]):
    """A block, from when it opens until it closes. Tasks that it starts keep it, and may go on when it has closed."""

    def __init__(self, block: Block, thread: int | None = None) -> None:
        """``thread`` is the ident of the only one to watch, where the block is not one of a task."""
        self.block = block
        self.open = True
        self._thread = thread
        self._object = live_threads.get(thread) if thread is not None else None

    def watches(self, thread: int) -> bool:
        """Whether the thread with this ident is watched. One that has ended leaves its ident to another."""
        return self._thread is None or (thread == self._thread and live_threads.get(thread) is self._object)


class OpenBlocks(Generic[Block]):
    """The open blocks, each of one thread and asyncio task, of one thread or of all threads.

    ``start`` runs when the first block of the process opens. It yields the functions that undo it, which run in
    reverse when the last block closes.
    """

    def __init__(self, start: Callable[[], Iterator[Callable[[], None]]]) -> None:
        self._start = start
        self._lock = threading.Lock()
        self._own: ContextVar[tuple[_Entry[Block], ...]] = ContextVar("syncscope_blocks", default=())
        self._everywhere: tuple[_Entry[Block], ...] = ()
        """Those that are not of a task alone."""
        self._entries: list[_Entry[Block]] = []
        """All that are open, in the order of their opening."""
        self._undo: list[Callable[[], None]] = []

    @property
    def here(self) -> tuple[Block, ...]:
        """Those that watch this thread, the innermost last."""
        if not self._entries:
            return ()
        own = tuple(entry.block for entry in self._own.get() if entry.open)
        everywhere = self._everywhere
        if not everywhere:
            return own
        ident = threading.get_ident()
        others = (entry.block for entry in everywhere if entry.watches(ident))
        return (*(block for block in others if not any(block is mine for mine in own)), *own)

    def enter(self, block: Block, *, everywhere: bool = False) -> None:
        """Open ``block`` in this task, or on all threads."""
        entry = _Entry(block)
        self._open(entry, everywhere)
        self._own.set((*(one for one in self._own.get() if one.open), entry))

    def enter_thread(self, block: Block, thread: int | None) -> None:
        """Open ``block`` on the thread with this ident, or on all, in any of its tasks."""
        self._open(_Entry(block, thread), everywhere=True)

    def _open(self, entry: _Entry[Block], everywhere: bool) -> None:
        with self._lock:
            if not self._entries:
                try:
                    self._undo.extend(self._start())
                except BaseException:
                    self._stop()
                    raise
            self._entries.append(entry)
            if everywhere:
                self._everywhere += (entry,)

    def leave(self, block: Block) -> None:
        """Close ``block``: what this task opened last of it, else what any did, because generators and fixtures may end
        elsewhere than they began."""
        with self._lock:
            same = [entry for entry in self._entries if entry.block is block]
            mine = self._own.get()
            closed = [entry for entry in same if entry in mine] or same
            if not closed:
                return
            closed[-1].open = False
            self._entries.remove(closed[-1])
            self._everywhere = tuple(entry for entry in self._everywhere if entry.open)
            if not self._entries:
                self._stop()

    def _stop(self) -> None:
        while self._undo:
            self._undo.pop()()
