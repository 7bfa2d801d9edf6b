"""A signal that asks for a report, in a program that may want the signal for itself."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable
from types import FrameType
from typing import Any

TAKEN = frozenset((
    "SIGKILL", "SIGSTOP", "SIGINT", "SIGTERM", "SIGCHLD", "SIGSEGV", "SIGABRT", "SIGFPE", "SIGBUS", "SIGILL", "SIGTRAP",
    "SIGSYS", "SIGPIPE", "SIGCONT", "SIGTSTP", "SIGTTIN", "SIGTTOU",
))  # fmt: skip
"""Signals with a meaning of their own."""


def signal_number(name: str) -> int:
    """The number of ``USR1`` or ``SIGUSR1``. Raises ``ValueError`` for one that is unknown or ``TAKEN``."""
    full = name.upper() if name.upper().startswith("SIG") else f"SIG{name.upper()}"
    found = getattr(signal, full, None)
    if not isinstance(found, signal.Signals):
        raise ValueError(f"{name!r} is no signal of this system")
    if full in TAKEN:
        raise ValueError(f"{full} has a meaning of its own: choose USR1 or USR2")
    return int(found)


class OnSignal:
    """Calls ``then`` when the signal comes, as long as the program sets no handler for it.

    ``then`` runs on the main thread between two bytecodes of the program, so it should only make a note.
    """

    def __init__(self, number: int, then: Callable[[], None]) -> None:
        self._number = number
        self._then = then
        self._pid = os.getpid()
        self._open = False

    @property
    def name(self) -> str:
        return signal.Signals(self._number).name

    def open(self) -> str | None:
        """Set the handler. Returns why it cannot be set, ``None`` where it was."""
        if threading.current_thread() is not threading.main_thread():
            return f"{self.name} asks for no report: signals belong to the main thread"
        if signal.getsignal(self._number) is not signal.SIG_DFL:
            return f"{self.name} asks for no report: the program has a handler for it"
        signal.signal(self._number, self._handle)
        self._open = True
        return None

    @property
    def given_way(self) -> bool:
        """Whether the program has set a handler of its own meanwhile."""
        return self._open and signal.getsignal(self._number) != self._handle

    def close(self) -> None:
        """Put back the default. A handler of the program's stays."""
        if self._open and not self.given_way and threading.current_thread() is threading.main_thread():
            signal.signal(self._number, signal.SIG_DFL)
        self._open = False

    def _handle(self, number: int, frame: FrameType | Any) -> None:
        if os.getpid() == self._pid:
            self._then()
