"""One machine: traces in this process, one after the other, or in a pool of processes.

A process that dies, as one that takes too much memory does, takes the pool with it. Its traces are then read again,
each alone, so that only the one that does it again is lost.
"""

from __future__ import annotations

import multiprocessing
import signal
from collections import deque
from collections.abc import Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool

import msgspec

from syncscope.analysis.engine import Progress
from syncscope.analysis.rank import Job, Studied, joined, study, unread
from syncscope.trace.workers import available_cores

AHEAD = 2
"""Traces handed out for each process, so that none waits for the next."""

DIED = "the process that read it was killed (by the system, for its memory?)"


class Local:
    """``jobs`` processes, no more than there are processors. More than one import the program's main module anew."""

    def __init__(self, jobs: int = 1) -> None:
        self._jobs = max(1, min(jobs, available_cores()))

    def study(self, paths: Sequence[str], job: Job, progress: Progress | None = None) -> Studied:
        if min(self._jobs, len(paths)) == 1:
            return joined(_one_by_one(paths, msgspec.json.encode(job), progress))
        alone = msgspec.structs.replace(job.reading, workers=1)  # the processors are at work
        asked = msgspec.json.encode(msgspec.structs.replace(job, reading=alone))
        found = _Pool(paths, asked, min(self._jobs, len(paths)), progress).study()
        return joined(found.pop(number) for number in range(len(paths)))


def _one_by_one(paths: Sequence[str], job: bytes, progress: Progress | None) -> list[bytes]:
    found = []
    for done, path in enumerate(paths):
        if progress:
            progress(path, done, len(paths))
        found.append(study(path, job))
    if progress:
        progress(paths[-1], len(paths), len(paths))
    return found


class _Pool:
    def __init__(self, paths: Sequence[str], job: bytes, jobs: int, progress: Progress | None) -> None:
        self._paths, self._job, self._jobs, self._progress = paths, job, jobs, progress
        self._found: dict[int, bytes] = {}
        # A fork of a program with threads may hang; a fresh process, or a fork of one, does not.
        ways = multiprocessing.get_all_start_methods()
        self._context = multiprocessing.get_context("forkserver" if "forkserver" in ways else "spawn")
        if "forkserver" in ways:
            self._context.set_forkserver_preload([study.__module__])

    def study(self) -> dict[int, bytes]:
        """The ``Studied`` of each, as JSON, by number."""
        left = deque(range(len(self._paths)))
        while left:
            for number in self._until_one_dies(left):
                try:
                    with self._pool(1) as pool:
                        found = self._submit(pool, number).result()
                except BrokenProcessPool:
                    found = msgspec.json.encode(unread(self._paths[number], DIED))
                self._keep(number, found)
        return self._found

    def _until_one_dies(self, left: deque[int]) -> list[int]:
        """Study what is ``left``; what was under way when a process died."""
        under_way: dict[Future[bytes], int] = {}
        lost: list[int] = []
        pool = self._pool(self._jobs)
        try:
            while under_way or (left and not lost):
                while left and not lost and len(under_way) < AHEAD * self._jobs:
                    number = left.popleft()
                    try:
                        under_way[self._submit(pool, number)] = number
                    except BrokenProcessPool:
                        lost.append(number)
                for future in wait(under_way, return_when=FIRST_COMPLETED).done:
                    number = under_way.pop(future)
                    try:
                        self._keep(number, future.result())
                    except BrokenProcessPool:
                        lost.append(number)
        finally:
            pool.shutdown(cancel_futures=True)
        return sorted(lost)

    def _pool(self, jobs: int) -> ProcessPoolExecutor:
        return ProcessPoolExecutor(jobs, mp_context=self._context, initializer=_die_quietly)

    def _submit(self, pool: ProcessPoolExecutor, number: int) -> Future[bytes]:
        return pool.submit(study, self._paths[number], self._job)

    def _keep(self, number: int, found: bytes) -> None:
        self._found[number] = found
        if self._progress:
            self._progress(self._paths[number], len(self._found), len(self._paths))


def _die_quietly() -> None:
    """An interrupt from the terminal goes to all processes; this program says once that it ends."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)
