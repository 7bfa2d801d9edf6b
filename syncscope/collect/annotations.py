"""What a program may say about itself: ``syncscope.step()`` and ``syncscope.expected(reason)``.

It imports little and does nothing while no collector records, because programs import it for normal runs too.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator
from typing import Protocol


class Recorder(Protocol):
    """What records or counts a program."""

    def open(self) -> None:
        """Begin, before or after the program has imported torch."""

    def step(self) -> None:
        """The program said that a step ended."""

    def close(self) -> None:
        """Remove every hook and write what was recorded."""

    def abandon(self) -> None:
        """Remove every hook, in a forked child that used no CUDA before, and write nothing."""


_recorders: list[Recorder] = []
"""Those that record now."""


step_listeners: list[Callable[[], None]] = []
"""Who also hears of the program's steps, and records nothing."""


def step() -> None:
    """Say that a step of the program ended. Free while nothing records."""
    for recorder in tuple(_recorders):
        recorder.step()
    for listener in tuple(step_listeners):
        listener()


def begin(recorder: Recorder) -> None:
    """Start ``recorder`` and send it the program's steps."""
    _recorders.append(recorder)
    recorder.open()


def end(recorder: Recorder) -> None:
    """Close ``recorder`` and send it no more steps."""
    recorder.close()
    if recorder in _recorders:
        _recorders.remove(recorder)


def recording() -> bool:
    """Whether something records or counts the program now."""
    return bool(_recorders)


def forget_all() -> list[Recorder]:
    """Send steps to none of those that recorded, and return them."""
    forgotten = list(_recorders)
    _recorders.clear()
    return forgotten


class _Expectation(threading.local):
    """The innermost ``expected`` block that this thread is in."""

    reason: str | None = None


expectation = _Expectation()


@contextlib.contextmanager
def expected(reason: str) -> Iterator[None]:
    """Mark this thread's waits inside the block as *expected*, for ``reason``. Also a decorator."""
    outer, expectation.reason = expectation.reason, reason
    try:
        yield
    finally:
        expectation.reason = outer
