"""What a program may say about itself: ``syncscope.step()`` and ``syncscope.expected(reason)``.

It imports little and does nothing while no collector records, because programs import it for normal runs too.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from syncscope.collect.collector import Collector

_collectors: list[Collector] = []
"""Those that record now. The last one gets the program's steps."""


def step() -> None:
    """Say that a step of the program ended. Free while nothing records."""
    if _collectors:
        _collectors[-1].step()


def begin(collector: Collector) -> None:
    """Start ``collector`` and send it the program's steps."""
    _collectors.append(collector)
    collector.open()


def end(collector: Collector) -> None:
    """Close ``collector`` and send it no more steps."""
    collector.close()
    if collector in _collectors:
        _collectors.remove(collector)


def forget_all() -> list[Collector]:
    """Send steps to none of the collectors that recorded, and return them."""
    forgotten = list(_collectors)
    _collectors.clear()
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
