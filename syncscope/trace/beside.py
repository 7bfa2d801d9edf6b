"""A second thread, for what of a large trace needs nothing of the rest: numpy lets go of the interpreter meanwhile."""

from __future__ import annotations

from collections.abc import Callable
from types import TracebackType
from typing import TypeVar

from syncscope.trace.memory import LARGE
from syncscope.trace.model import Trace
from syncscope.trace.source import Reading
from syncscope.trace.workers import default_workers

T = TypeVar("T")


class Beside:
    """Work beside this thread while the context is open."""

    def __init__(self, *, threaded: bool) -> None:
        self.threaded = threaded
        if threaded:
            from concurrent.futures import ThreadPoolExecutor  # with logging: small traces do without

        self._thread = ThreadPoolExecutor(1) if threaded else None

    @classmethod
    def of(cls, trace: Trace, reading: Reading) -> Beside:
        """With a thread where a trace is large, and was read on more than one processor."""
        many = sum(map(len, trace.rows.values()))
        processors = default_workers() if reading.workers is None else reading.workers
        return cls(threaded=many >= LARGE and processors > 1)

    def __enter__(self) -> Beside:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if self._thread is not None:
            self._thread.shutdown(cancel_futures=True)

    def begin(self, work: Callable[[], T]) -> Callable[[], T]:
        """Begin some work, which has been done when what this returns is called: that returns its result or raises its
        error. Without a thread it is done here."""
        if self._thread is not None:
            try:
                return self._thread.submit(work).result
            except RuntimeError:  # Python ends, and starts no thread any more
                pass
        result = work()
        return lambda: result
