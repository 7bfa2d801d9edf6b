"""The protocol of an engine, which analyses many traces. All engines return the same results, in the traces' order."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

from syncscope.analysis.rank import Job, Results

Progress = Callable[[str, int, int], None]
"""Called with a trace, how many are done, and how many there are; and once at the end. The trace is the one about to be
read, or the one just read where several are read at once."""


class EngineError(RuntimeError):
    """Ranks cannot be analysed there; ``str()`` is one line."""


class Engine(Protocol):
    def analyze(self, paths: Sequence[str], job: Job, progress: Progress | None = None) -> Results:
        """Both phases of every trace, merged in the order of ``paths``. Traces that cannot be read are in
        ``Report.unread``."""
