"""What a program may say about itself: ``syncscope.step()`` and ``syncscope.expected(reason)``.

It imports little and does nothing while no collector records, because programs import it for normal runs too.
"""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Iterator
from contextvars import ContextVar
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


expectation: ContextVar[str | None] = ContextVar("syncscope_expectation", default=None)
"""The reason of the innermost ``expected`` block that this thread, and this asyncio task, is in."""


def compiling() -> bool:
    """Whether PyTorch is compiling the caller: a block there has no run of its own, and must not be traced."""
    compiler = getattr(sys.modules.get("torch"), "compiler", None)  # None while torch is being imported
    return compiler is not None and compiler.is_compiling()


@contextlib.contextmanager
def expected(reason: str) -> Iterator[None]:
    """Mark the waits of this thread and asyncio task inside the block as *expected*, for ``reason``. Also a decorator.

    A block that PyTorch compiles is no part of the graph.
    """
    if compiling():
        yield
        return
    outer = expectation.get()
    expectation.set(reason)
    try:
        yield
    finally:
        expectation.set(outer)
