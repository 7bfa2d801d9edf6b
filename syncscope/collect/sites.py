"""The sites hook: everything that says at which line the program waited or copied, as one list of events."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from types import FrameType
from typing import Any

from syncscope.collect.expected import reasons
from syncscope.collect.stacks import Stacks
from syncscope.collect.warn import waits
from syncscope.collect.wrap import Wrappers
from syncscope.schema.recording import EventKind, SiteEvent

Event = tuple[EventKind, str, int, int, int, int, "str | None"]
"""Kind, name, native thread, begin and end in ns, stack, reason: a ``SiteEvent`` in the making."""


class Sites:
    """Listens while open; several windows share one table of stacks.

    Opening needs an initialised CUDA context. ``close`` restores every setting and wrapper.
    """

    def __init__(self, torch: Any, stacks: Stacks, threads: Threads) -> None:
        self._torch = torch
        self._events: list[Event] = []
        self._add = _adder(self._events, stacks, threads)
        self._wrappers = Wrappers(torch, self._add, waits)

    def open(self) -> None:
        waits.listen(self._torch, self._warned)
        self._wrappers.open()

    def close(self) -> None:
        self._wrappers.close()
        waits.unlisten(self._warned)

    def take(self) -> tuple[SiteEvent, ...]:
        """The events so far, in order of their end; the list starts anew."""
        taken = self._events.copy()
        del self._events[: len(taken)]
        events = [
            SiteEvent(kind=kind, name=name, tid=tid, start_ns=start, end_ns=end, stack=stack, expected=reason)
            for kind, name, tid, start, end, stack, reason in taken
        ]
        return tuple(sorted(events, key=lambda event: event.end_ns))

    def _warned(self, frame: FrameType) -> None:
        self._wrappers.warned.count += 1
        self._add("", time.time_ns(), frame, "warning")


def _adder(events: list[Event], stacks: Stacks, threads: Threads) -> Callable[..., None]:
    """``add(name, start_ns, frame)``: what runs at every wrapped call, so everything it needs is at hand."""
    now, append, take, thread, reasons_here = time.time_ns, events.append, stacks.take, threads.here, reasons

    def add(name: str, start_ns: int, frame: FrameType, kind: EventKind = "call") -> None:
        end_ns = now()
        tid = thread.tid or threads.current()
        append((kind, name, tid, start_ns, end_ns, take(frame), reasons_here.current))

    return add


class _Here(threading.local):
    """This thread's native id; 0 before it was asked for."""

    tid = 0


class Threads:
    """Native thread ids, and the other number by which Kineto may know a thread."""

    def __init__(self) -> None:
        self.aliases: dict[str, int] = {}
        self.here = _Here()

    def current(self) -> int:
        """The native id of this thread; asked of the kernel once a thread."""
        if not self.here.tid:
            self.here.tid = threading.get_native_id()
            self.aliases[str(kineto_tid(threading.get_ident()))] = self.here.tid
        return self.here.tid

    @staticmethod
    def names() -> dict[str, str]:
        """Native thread id → name, of the Python threads alive now."""
        return {str(thread.native_id): thread.name for thread in threading.enumerate() if thread.native_id is not None}


def kineto_tid(ident: int) -> int:
    """How Kineto writes a pthread id it cannot resolve: the low half as a signed number, without its sign."""
    low = ident & 0xFFFFFFFF
    return low if low < 1 << 31 else (1 << 32) - low
