"""``with syncscope.expected("epoch metrics"):`` marks waits the author knows about."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator


class _Reasons(threading.local):
    """The reason of the innermost ``expected`` block around what this thread does."""

    current: str | None = None


reasons = _Reasons()


@contextlib.contextmanager
def expected(reason: str) -> Iterator[None]:
    """Waits of this thread inside the block are *expected*, for ``reason``. Also a decorator; free when idle."""
    outer, reasons.current = reasons.current, reason
    try:
        yield
    finally:
        reasons.current = outer
