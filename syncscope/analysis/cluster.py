"""Beyond one machine: one task a rank on the workers of a dask cluster, joined on them in a tree.

The workers need the same syncscope, and the traces under the same paths. What a worker had done when it died is done
again elsewhere; a rank that fails however often it is tried is told as one that could not be read.
"""

from __future__ import annotations

import os
import uuid
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import msgspec

from syncscope.analysis.engine import EngineError, Progress
from syncscope.analysis.rank import Job, Studied, join, joined, study, unread
from syncscope.trace import remote
from syncscope.trace.extras import require

if TYPE_CHECKING:
    from distributed import Client, Future

RETRIES = 2
"""Times a task that raises an error is tried again. How many workers it may take with it is the scheduler's
``allowed-failures``."""

FAILED = ("error", "cancelled")
"""States that a task does not leave."""

TOGETHER = 16
"""Results joined by one task."""

REACHED_S = 20
"""Seconds in which the scheduler must answer."""


class Cluster:
    """The dask cluster whose scheduler has the address."""

    def __init__(self, address: str) -> None:
        self._address = address

    def study(self, paths: Sequence[str], job: Job, progress: Progress | None = None) -> Studied:
        """Raises :class:`EngineError` where there is no cluster, or it goes away, and :class:`.MissingExtra`."""
        require("cluster")
        from distributed import Client

        alone = msgspec.structs.replace(job.reading, workers=1)  # the workers are the cluster's
        asked = msgspec.json.encode(msgspec.structs.replace(job, reading=alone))
        try:
            client = Client(self._address, timeout=REACHED_S, set_as_default=False)
        except (OSError, ValueError) as error:  # distributed's own errors of connections are OSErrors
            raise EngineError(f"{self._address}: no dask scheduler answers: {_line(error)}") from None
        with client:
            try:
                client.wait_for_workers(1, timeout=REACHED_S)
            except TimeoutError:
                raise EngineError(f"{self._address}: the dask cluster has no workers") from None
            parts = _read(client, paths, asked, progress)
            return joined([_joined(client, parts)])


def _read(client: Client, paths: Sequence[str], job: bytes, progress: Progress | None) -> list[Any]:
    """The ``Studied`` of each trace, in order: futures, whose results stay on the workers, and bytes for those ranks
    that nothing came of."""
    from distributed import KilledWorker, as_completed

    tasks = [_submit(client, path, job) for path in paths]
    number = {task.key: n for n, task in enumerate(tasks)}
    parts: list[Any] = list(tasks)
    killed: list[int] = []

    def settle(n: int, task: Future) -> None:
        # One that was finished may be under way again: the worker that held its result has died.
        if task.status in FAILED:
            parts[n] = msgspec.json.encode(unread(paths[n], f"failed on the cluster: {_why(task)}"))

    for done, task in enumerate(as_completed(tasks, loop=client.loop), 1):
        n = number[task.key]
        settle(n, task)
        if task.status == "error" and isinstance(task.exception(), KilledWorker):
            killed.append(n)
        if progress:
            progress(paths[n], done, len(paths))
    # What waited on a worker that died is blamed with what killed it. Alone, only that dies again.
    for n in sorted(killed) if len(killed) > 1 else ():
        parts[n] = again = _submit(client, paths[n], job)
        again.exception()  # waits for it
        settle(n, again)
    return parts


def _submit(client: Client, path: str, job: bytes) -> Future:
    key = f"syncscope-rank-{uuid.uuid4().hex}"
    return client.submit(study, _anywhere(path), job, remote.shown(path), retries=RETRIES, key=key)


def _joined(client: Client, parts: list[Any]) -> bytes:
    while len(parts) > 1:
        groups = [parts[at : at + TOGETHER] for at in range(0, len(parts), TOGETHER)]
        parts = [client.submit(join, group, retries=RETRIES, pure=False) for group in groups]
    (root,) = parts
    if isinstance(root, bytes):
        return root
    try:
        return bytes(root.result())
    except Exception as error:  # whatever a worker raised, or that all are gone
        raise EngineError(f"the ranks could not be joined on the cluster: {_line(error)}") from None


def _anywhere(path: str) -> str:
    """A path that means the same in another folder."""
    return path if remote.is_url(path) else os.path.abspath(remote.on_disk(path))


def _why(task: Future) -> str:
    error = task.exception()
    return "it was cancelled" if error is None else _line(error)


def _line(error: BaseException) -> str:
    lines = str(error).strip().splitlines()
    return f"{type(error).__name__}: {lines[0]}" if lines else type(error).__name__
