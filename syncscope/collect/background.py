"""Work beside the program, on a thread that it does not see."""

from __future__ import annotations

import _thread
import contextlib
import math
import os
import time
from collections.abc import Callable


class Background:
    """Calls ``work`` every ``seconds`` until ``close``. Less often where it would take more than ``most_share`` of the
    time, but after ``longest`` seconds in any case.

    ``threading`` does not list the thread: a program may count its threads, and hooks are cheaper where there is one.
    A forked child has no such thread. ``work`` must not call ``threading.current_thread``, which would list it.
    """

    def __init__(self, seconds: float, work: Callable[[], None], most_share: float, longest: float = math.inf) -> None:
        self.busy_ns = 0
        """Processor time of the thread so far."""
        self._seconds = seconds
        self._work = work
        self._most_share = most_share
        self._longest = longest
        # Locks instead of an event: a signal's handler may close it at any moment.
        self._asleep = _thread.allocate_lock()
        self._running = _thread.allocate_lock()
        self._closed = False
        self._pid = os.getpid()

    def open(self) -> None:
        """Raises ``RuntimeError`` where there can be no more threads."""
        self._asleep.acquire()
        self._running.acquire()
        try:
            _thread.start_new_thread(self._run, ())
        except RuntimeError:
            self._running.release()
            raise

    def end(self) -> None:
        """End the thread, from within ``work``."""
        self._closed = True

    def close(self, patience: float = 5) -> None:
        """End the thread, and wait for work that it is in, but no longer than ``patience`` seconds."""
        self._closed = True
        if os.getpid() == self._pid:
            with contextlib.suppress(RuntimeError):  # it is awake, or was never opened
                self._asleep.release()
            if self._running.acquire(timeout=patience):
                self._running.release()

    def _run(self) -> None:
        pause = self._seconds
        try:
            while not self._asleep.acquire(timeout=pause) and not self._closed:
                began, spent = time.monotonic(), time.thread_time_ns()
                with contextlib.suppress(Exception):  # a thread of ours must not print a traceback
                    self._work()
                spent = time.thread_time_ns() - spent
                self.busy_ns += spent
                pause = max(self._seconds - (time.monotonic() - began), spent / 1e9 / self._most_share, 0.01)
                pause = min(pause, self._longest)
        finally:
            self._running.release()
