"""A guard that the environment asks for: it waits until the process has warmed up, and stays to its end."""

from __future__ import annotations

import atexit
import contextlib
import json
import os
import sys
import threading
from types import FrameType
from typing import Any

from syncscope.collect.environment import GUARD, GUARD_FOLDER
from syncscope.collect.live.guard import guard
from syncscope.collect.live.guarded import Order
from syncscope.collect.live.waits import LiveWait, program_line, waiting_call
from syncscope.collect.live.warm_up import WarmUp
from syncscope.collect.live.watching import open_blocks
from syncscope.collect.naming import how_it_was_started
from syncscope.collect.sites.threads import live_threads

MOST_PLACES = 1000
"""That are told apart in a process. Waits at further ones are guarded, and not listed."""


class Armed:
    """Guards this process after ``order.after`` steps, and writes to a file of ``folder`` what it saw.

    It is on the thread of the last of these steps, or on all, if the order says so.
    """

    decides = True
    hears_expected = False

    def __init__(self, order: Order, folder: str | None) -> None:
        self._order = order
        self._folder = folder
        self._pid = os.getpid()
        self._armed = False
        self._failure = ""
        self._waits: dict[tuple[Any, int], dict[str, Any]] = {}
        self._thread = 0
        self._watched: threading.Thread | None = None
        """The only thread that is guarded."""
        self._warm_up = WarmUp(order.after, self._arm)
        self._guard = None
        if order.action != "count":
            self._guard = guard(order.action, allow=order.allow)  # type: ignore[arg-type]

    def open(self, torch: Any) -> None:
        """Begin to look for steps. CUDA is being initialised."""
        self.write()
        try:
            self._warm_up.open(torch)
        except Exception as error:
            self._fail(error)

    def close(self) -> None:
        """The process ends: what was seen until now is all."""
        if os.getpid() == self._pid:
            self.write()

    def _arm(self) -> None:
        self._thread = threading.get_ident()
        try:
            open_blocks.enter_thread(self, None if self._order.threads == "all" else self._thread)
        except Exception as error:
            self._fail(error)
            return
        if self._order.threads == "own":
            self._watched = live_threads.get(self._thread)
        self._armed = True
        self.write()

    def on_wait(self, wait: LiveWait) -> None:
        """Count a wait, and do what the order says."""
        with contextlib.suppress(Exception):  # ours: the program must not fail because it cannot be written
            self._count(program_line(wait.frame))
        if self._guard is not None:
            self._guard.on_wait(wait)

    def _count(self, frame: FrameType) -> None:
        place = self._waits.get((frame.f_code, frame.f_lasti))
        if place is None:
            if len(self._waits) >= MOST_PLACES:
                return
            place = self._waits[frame.f_code, frame.f_lasti] = self._describe(frame)
        place["count"] += 1
        if place["count"] & (place["count"] - 1) == 0:  # the first, second, fourth, eighth, …
            self.write()

    def _describe(self, frame: FrameType) -> dict[str, Any]:
        ident = threading.get_ident()
        thread = live_threads.get(ident) if ident != self._thread else None
        return {
            "place": f"{frame.f_code.co_filename}:{frame.f_lineno}",
            "function": getattr(frame.f_code, "co_qualname", frame.f_code.co_name),
            "expression": waiting_call(frame)[0],
            "thread": thread.name if thread is not None else "",
            "count": 0,
        }

    def _watched_has_ended(self) -> bool:
        watched = self._watched
        if watched is None or watched is threading.main_thread():  # that one is said to be over when we are asked last
            return False
        return live_threads.get(self._thread) is not watched

    def _fail(self, error: Exception) -> None:
        self._failure = f"{type(error).__name__}: {error}"
        self.write()

    def write(self) -> None:
        """Write what was seen so far, whole or not at all. Does nothing where the first process is gone."""
        if self._folder is None or not os.path.isdir(self._folder):
            return
        said = {
            "pid": self._pid,
            "how": how_it_was_started(),
            "after": self._order.after,
            "steps": self._warm_up.steps,
            "armed": self._armed,
            "failure": self._failure,
            "ended": self._watched_has_ended(),
            "waits": list(self._waits.values()),
        }
        path = os.path.join(self._folder, f"{self._pid}.json")
        with contextlib.suppress(OSError):
            with open(f"{path}.new", "w", encoding="utf-8") as stream:
                json.dump(said, stream)
            os.replace(f"{path}.new", path)


_armed: Armed | None = None


def arm_later() -> None:
    """Guard this process as the environment asks. Does nothing the second time, but in a fork it is the first."""
    global _armed
    if _armed is not None and _armed._pid == os.getpid():
        return
    import torch

    _armed = Armed(Order(os.environ[GUARD]), os.environ.get(GUARD_FOLDER))
    atexit.register(_armed.close)
    if "multiprocessing.util" in sys.modules:  # its forked processes leave by os._exit, after these
        from multiprocessing.util import Finalize

        Finalize(None, _armed.close, exitpriority=1000)
    _armed.open(torch)
