"""Record at which lines the program waits and copies, as one list of events."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from types import FrameType
from typing import Any

from syncscope.collect import features
from syncscope.collect.annotations import expectation
from syncscope.collect.sites.stacks import Stacks
from syncscope.collect.sites.sync_debug import sync_debug_mode
from syncscope.collect.sites.threads import Threads
from syncscope.collect.sites.wrappers import CallWrappers
from syncscope.schema.recording import EventKind, SiteEvent

Event = tuple[EventKind, str, int, int, int, int, "str | None"]
"""The fields of a ``SiteEvent``: kind, name, native thread, begin and end in ns, stack, reason it is expected."""


class SiteRecorder:
    """Records the program's waits and copies from ``open`` to ``close``. Several windows share one table of stacks.

    ``hears_copies``: nothing is timed, so copies that wait are told by PyTorch's warnings as well.

    Opening needs an initialised CUDA context. ``close`` puts back every setting and method, and does nothing unless
    open. Opening raises ``features.Unsupported`` where PyTorch has no sync debug mode.
    """

    def __init__(self, torch: Any, stacks: Stacks, threads: Threads, *, hears_copies: bool = False) -> None:
        features.require(torch, features.SYNC_DEBUG_MODE, "see waits")
        self._torch = torch
        self._events: list[Event] = []
        self._open = threading.Event()
        """Else nothing is kept: a function of the program's may go on to call a wrapper that it took for PyTorch's."""
        self._add = _make_add(self._events, stacks, threads, self._open.is_set)
        self._calls = CallWrappers(torch, self._add, sync_debug_mode, hears_copies=hears_copies)
        self._listening = False

    @property
    def missing(self) -> tuple[str, ...]:
        """The entry points that this version of PyTorch lacks, so that their calls are not recorded."""
        return tuple(self._calls.missing)

    def open(self) -> None:
        self._listening = True
        self._open.set()
        sync_debug_mode.listen(self._torch, self._on_warning)
        self._calls.open()

    def close(self) -> None:
        self._open.clear()
        self._calls.close()
        if self._listening:
            self._listening = False
            sync_debug_mode.unlisten(self._on_warning)

    def take(self) -> tuple[SiteEvent, ...]:
        """The events since the last ``take``, in order of their end."""
        taken, groups = self._events.copy(), self._calls.groups.copy()
        del self._events[: len(taken)]
        self._calls.groups.clear()
        events = [
            SiteEvent(
                kind=kind, name=name, tid=tid, start_ns=start, end_ns=end, stack=stack, expected=reason,
                group=groups.get(start) if name == "backward" or name.startswith("ProcessGroup.") else None,
            )
            for kind, name, tid, start, end, stack, reason in taken
        ]  # fmt: skip
        return tuple(sorted(events, key=lambda event: event.end_ns))

    def _on_warning(self, frame: FrameType) -> None:
        self._calls.warnings.count += 1
        self._add("", time.time_ns(), frame, "warning")


def _make_add(
    events: list[Event], stacks: Stacks, threads: Threads, is_open: Callable[[], bool]
) -> Callable[..., None]:
    """``add(name, start_ns, frame)``, which runs at every wrapped call. It looks up local names only: they are fast."""
    now, append, take, local, here = time.time_ns, events.append, stacks.take, threads.local, expectation.get

    def add(name: str, start_ns: int, frame: FrameType, kind: EventKind = "call") -> None:
        end_ns = now()
        if not is_open():
            return
        tid = local.tid or threads.current()
        append((kind, name, tid, start_ns, end_ns, take(frame), here()))

    return add
