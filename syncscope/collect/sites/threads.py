"""The numbers by which a recording and Kineto know the program's threads."""

from __future__ import annotations

import gc
import sys
import threading
from types import FrameType

live_threads: dict[int, threading.Thread] = threading._active  # type: ignore[attr-defined]
"""Every Python thread that is alive, by its ident. ``threading.active_count`` takes a lock and a microsecond."""


class _NativeId(threading.local):
    """This thread's native id, 0 until it was looked up."""

    tid = 0


class Threads:
    """Native thread ids, and the other number by which Kineto may know a thread."""

    def __init__(self) -> None:
        self.aliases: dict[str, int] = {}
        """Kineto's number → native id, of the threads whose id was looked up."""
        self.local = _NativeId()

    def current(self) -> int:
        """The native id of this thread. Asks the kernel once a thread."""
        if not self.local.tid:
            self.local.tid = threading.get_native_id()
            self.aliases[str(kineto_tid(threading.get_ident()))] = self.local.tid
        return self.local.tid

    @staticmethod
    def names() -> dict[str, str]:
        """Native thread id → name, of the Python threads alive now."""
        return {str(thread.native_id): thread.name for thread in threading.enumerate() if thread.native_id is not None}


def current_frames() -> dict[int, FrameType]:
    """The innermost frame of each thread, by the thread's ident.

    No garbage collection begins meanwhile: ``sys._current_frames`` holds a lock that a collection waits for, so Python
    would stop for ever (CPython's gh-106883, seen with 3.11.7).
    """
    collects = gc.isenabled()
    gc.disable()
    try:
        return sys._current_frames()
    finally:
        if collects:
            gc.enable()


def kineto_tid(ident: int) -> int:
    """How Kineto writes a pthread id that it cannot resolve: the low half as a signed number, without its sign."""
    low = ident & 0xFFFFFFFF
    return low if low < 1 << 31 else (1 << 32) - low
