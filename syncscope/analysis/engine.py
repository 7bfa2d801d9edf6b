"""Where ranks are studied. Every engine gives the same for the same traces, in their order."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

from syncscope.analysis.rank import Job, Studied

Progress = Callable[[str, int, int], None]
"""Called with a trace (the one about to be read, or of several at once the one just read), how many are done and how
many there are; and once at the end."""


class EngineError(RuntimeError):
    """Ranks cannot be studied there; ``str()`` is one line."""


class Engine(Protocol):
    def study(self, paths: Sequence[str], job: Job, progress: Progress | None = None) -> Studied:
        """All of the traces, joined in their order. Those that cannot be read are in ``Report.unread``."""


def engine(jobs: int = 1, scheduler: str | None = None) -> Engine:
    """This machine, with so many processes, or the dask cluster whose scheduler has the address."""
    if scheduler is not None:
        from syncscope.analysis.cluster import Cluster

        return Cluster(scheduler)
    from syncscope.analysis.local import Local

    return Local(jobs)
