"""Analyse traces on a dask cluster: one task for each rank, and the results merged on the workers in a tree.

The workers need the same syncscope, and the traces under the same paths. When a worker dies, its tasks run again on
another one. A rank that still fails after the retries is reported as one that could not be read.
"""

from __future__ import annotations

import os
import uuid
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import msgspec

from syncscope.analysis.engine import EngineError, Progress
from syncscope.analysis.rank import (
    Job,
    Results,
    analyze_rank,
    compare_rank,
    merge_encoded,
    merge_results,
    results_of,
    unread,
)
from syncscope.estimate import peers_to_compare
from syncscope.trace import remote
from syncscope.trace.extras import require

if TYPE_CHECKING:
    from distributed import Client, Future

RETRIES = 2
"""How often a task that raises an error is tried again. How many workers it may kill is the scheduler's
``allowed-failures``."""

FAILED = ("error", "cancelled")
"""Final states of a task that did not succeed."""

TOGETHER = 16
"""Results merged by one task."""

REACHED_S = 20
"""Seconds in which the scheduler must answer."""


class Cluster:
    """The dask cluster whose scheduler has the address."""

    def __init__(self, address: str) -> None:
        self._address = address

    def analyze(self, paths: Sequence[str], job: Job, progress: Progress | None = None) -> Results:
        """Raises :class:`EngineError` where there is no cluster, or it goes away, and :class:`.MissingExtra`."""
        require("cluster")
        from distributed import Client

        # The workers are the cluster's.
        encoded = msgspec.json.encode(
            msgspec.structs.replace(job, reading=msgspec.structs.replace(job.reading, workers=1))
        )
        try:
            client = Client(self._address, timeout=REACHED_S, set_as_default=False)
        except (OSError, ValueError) as error:  # distributed's own errors of connections are OSErrors
            raise EngineError(f"{self._address}: no dask scheduler answers: {_line(error)}") from None
        with client:
            try:
                client.wait_for_workers(1, timeout=REACHED_S)
            except TimeoutError:
                raise EngineError(f"{self._address}: the dask cluster has no workers") from None

            def read(number: int) -> Future:
                path = paths[number]
                return _submit(client, analyze_rank, _anywhere(path), encoded, remote.shown(path))

            ranks = _run(client, paths, read, progress)
            results = _merged(client, ranks)
            if peers := peers_to_compare(results.peers):
                known = msgspec.json.encode(peers)
                again = _run(client, paths, lambda number: _submit(client, compare_rank, ranks[number], known))
                results = _merged(client, again)
            return results


def _run(
    client: Client, paths: Sequence[str], submit: Callable[[int], Future], progress: Progress | None = None
) -> list[Any]:
    """The ``Rank`` of each trace, in order: a future, whose result stays on the workers, or the rank as one that could
    not be read where its task failed."""
    from distributed import KilledWorker, as_completed

    tasks = [submit(n) for n in range(len(paths))]
    number = {task.key: n for n, task in enumerate(tasks)}
    ranks: list[Any] = list(tasks)
    killed: list[int] = []

    def settle(n: int, task: Future) -> None:
        # One that was finished may be under way again: the worker that held its result has died.
        if task.status in FAILED:
            ranks[n] = unread(paths[n], f"failed on the cluster: {_why(task)}")

    for done, task in enumerate(as_completed(tasks, loop=client.loop), 1):
        n = number[task.key]
        settle(n, task)
        if task.status == "error" and isinstance(task.exception(), KilledWorker):
            killed.append(n)
        if progress:
            progress(paths[n], done, len(paths))
    # Dask blames every task of a worker that died. Run alone, only the task that killed it fails again.
    for n in sorted(killed) if len(killed) > 1 else ():
        ranks[n] = again = submit(n)
        again.exception()  # waits for it
        settle(n, again)
    return ranks


def _submit(client: Client, function: Callable[..., Any], *arguments: Any) -> Future:
    key = f"syncscope-{function.__name__}-{uuid.uuid4().hex}"
    return client.submit(function, *arguments, retries=RETRIES, key=key)


def _merged(client: Client, ranks: Sequence[Any]) -> Results:
    """The results of all ranks, merged on the workers in a tree. What was kept of each rank stays on its worker."""
    parts = [_submit(client, results_of, rank) for rank in ranks]
    while len(parts) > 1:
        groups = [parts[at : at + TOGETHER] for at in range(0, len(parts), TOGETHER)]
        parts = [_submit(client, merge_encoded, group) for group in groups]
    try:
        return merge_results([bytes(parts[0].result())])
    except Exception as error:  # whatever a worker raised, or that all are gone
        raise EngineError(f"the ranks could not be merged on the cluster: {_line(error)}") from None


def _anywhere(path: str) -> str:
    """A path that means the same in another folder."""
    return path if remote.is_url(path) else os.path.abspath(remote.on_disk(path))


def _why(task: Future) -> str:
    error = task.exception()
    return "it was cancelled" if error is None else _line(error)


def _line(error: BaseException) -> str:
    lines = str(error).strip().splitlines()
    return f"{type(error).__name__}: {lines[0]}" if lines else type(error).__name__
