"""Analyse traces on one machine: one after the other in this process, or in a pool of processes.

A process that dies, for example because it takes too much memory, takes the pool with it. Its traces are then tried
again, each alone, so that only a trace that kills its process again is lost.
"""

from __future__ import annotations

import contextlib
import signal
import threading
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, Future, wait
from types import FrameType
from typing import TYPE_CHECKING, Any

import msgspec

from syncscope.analysis.engine import Progress
from syncscope.analysis.rank import (
    NOTHING_KEPT,
    Job,
    Rank,
    Results,
    analyze_alone,
    analyze_rank,
    compare_rank,
    merge_results,
    unread,
)
from syncscope.estimate import MOST_PEERS, peers_to_compare
from syncscope.trace.workers import available_cores

if TYPE_CHECKING:
    from concurrent.futures import ProcessPoolExecutor

AHEAD = 2
"""Traces given to each process in advance, so that none waits for the next."""

DIED = "the process that read it was killed (by the system, for its memory?)"

Task = tuple[Callable[..., Rank], tuple[Any, ...]]
"""A function and what to call it with."""


class Local:
    """Up to ``jobs`` processes, no more than there are processors. Several processes import the program's main module
    again."""

    def __init__(self, jobs: int = 1) -> None:
        self._jobs = max(1, min(jobs, available_cores()))

    def analyze(self, paths: Sequence[str], job: Job, progress: Progress | None = None) -> Results:
        if len(paths) == 1:
            if progress:
                progress(paths[0], 0, 1)
            results = analyze_alone(paths[0], job)
            if progress:
                progress(paths[0], 1, 1)
            return results
        jobs = min(self._jobs, len(paths))
        if jobs > 1:  # the processors are taken
            job = msgspec.structs.replace(job, reading=msgspec.structs.replace(job.reading, workers=1))
        encoded = msgspec.json.encode(job)
        run = _run_in_turn if jobs == 1 else _Pool(jobs).run
        ranks = _Ranks()
        run([(analyze_rank, (path, encoded)) for path in paths], paths, ranks.keep, progress)
        results = ranks.merged()
        if peers := peers_to_compare(results.peers):
            known = msgspec.json.encode(peers)
            again = [(compare_rank, (rank, known)) for rank in ranks.in_order()]
            run(again, paths, ranks.keep, None)
            results = ranks.merged()
        return results


class _Ranks:
    """The result of each rank, by number. What was kept of them is dropped once there are too many ranks to compare."""

    def __init__(self) -> None:
        self._ranks: dict[int, Rank] = {}
        self._kept = 0

    def keep(self, number: int, rank: Rank) -> None:
        self._kept += rank[1] != NOTHING_KEPT
        self._ranks[number] = rank
        if self._kept > MOST_PEERS:
            self._ranks = {number: (results, NOTHING_KEPT) for number, (results, _) in self._ranks.items()}

    def in_order(self) -> list[Rank]:
        return [self._ranks[number] for number in sorted(self._ranks)]

    def merged(self) -> Results:
        return merge_results(results for results, _ in self.in_order())


Keep = Callable[[int, Rank], None]
"""Called with the number of each task and its result, as they come."""


def _run_in_turn(tasks: Sequence[Task], paths: Sequence[str], keep: Keep, progress: Progress | None) -> None:
    for number, (function, arguments) in enumerate(tasks):
        if progress:
            progress(paths[number], number, len(paths))
        keep(number, function(*arguments))
    if progress:
        progress(paths[-1], len(paths), len(paths))


class _Pool:
    """Processes that run one task for each path.

    loky 3.7 was tried in its place: a killed worker fails every task that is not done, as here, so what follows is
    needed all the same; a pool takes 1.9 s to start instead of 0.8, and 0.04 from the second on; Ctrl-C waits for the
    tasks under way.
    """

    def __init__(self, jobs: int) -> None:
        import multiprocessing  # one trace does without

        self._jobs = jobs
        # A fork of a program with threads may hang; a fresh process, or a fork of one, does not.
        ways = multiprocessing.get_all_start_methods()
        self._context = multiprocessing.get_context("forkserver" if "forkserver" in ways else "spawn")
        if "forkserver" in ways:
            self._context.set_forkserver_preload([analyze_rank.__module__])
            _start_forkserver()

    def run(self, tasks: Sequence[Task], paths: Sequence[str], keep: Keep, progress: Progress | None) -> None:
        """Run the tasks. One that kills its process, also when it runs alone, leaves a trace that could not be read."""
        done = 0

        def settle(number: int, rank: Rank) -> None:
            nonlocal done
            done += 1
            keep(number, rank)
            if progress:
                progress(paths[number], done, len(paths))

        left = deque(enumerate(tasks))
        while left:
            for number, task in self._run_until_one_dies(left, settle):
                try:
                    with self._start(1) as pool:
                        with _interrupted_afterwards():
                            future = pool.submit(task[0], *task[1])
                        rank = future.result()
                except BrokenExecutor:
                    rank = unread(paths[number], DIED)
                settle(number, rank)

    def _run_until_one_dies(self, left: deque[tuple[int, Task]], settle: Keep) -> list[tuple[int, Task]]:
        """Run what is ``left``, and return what was under way when a process died."""
        under_way: dict[Future[Rank], tuple[int, Task]] = {}
        lost: list[tuple[int, Task]] = []
        with self._start(self._jobs) as pool:
            while under_way or (left and not lost):
                while left and not lost and len(under_way) < AHEAD * self._jobs:
                    number, task = left.popleft()
                    try:
                        with _interrupted_afterwards():
                            under_way[pool.submit(task[0], *task[1])] = number, task
                    except BrokenExecutor:
                        lost.append((number, task))
                for future in wait(under_way, return_when=FIRST_COMPLETED).done:
                    number, task = under_way.pop(future)
                    try:
                        settle(number, future.result())
                    except BrokenExecutor:
                        lost.append((number, task))
        return sorted(lost, key=lambda pair: pair[0])

    @contextlib.contextmanager
    def _start(self, jobs: int) -> Iterator[ProcessPoolExecutor]:
        """A pool until the block ends. An interrupt does not wait for the tasks under way: it kills their processes."""
        from concurrent.futures import ProcessPoolExecutor

        pool = ProcessPoolExecutor(jobs, mp_context=self._context, initializer=_die_quietly)
        try:
            yield pool
        except BaseException:
            for process in list((pool._processes or {}).values()):
                process.kill()
            raise
        finally:
            pool.shutdown(cancel_futures=True)


def _start_forkserver() -> None:
    """Start the process that the others are forked from, where it does not run yet.

    It would print a traceback when it is interrupted while it imports, and so would a process forked from it before
    its own first line. So both have SIGINT blocked from their beginning; ``_die_quietly`` lets it through.
    """
    from multiprocessing import forkserver, resource_tracker

    resource_tracker.ensure_running()  # would unblock the signal otherwise
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        forkserver.ensure_running()
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


@contextlib.contextmanager
def _interrupted_afterwards() -> Iterator[None]:
    """An interrupt inside the block acts at its end. One that leaves a process half started would make that one print
    a traceback, when it finds that this program is gone."""
    handle = signal.getsignal(signal.SIGINT)
    if threading.current_thread() is not threading.main_thread() or not callable(handle):
        yield
        return
    came: list[tuple[int, FrameType | None]] = []
    signal.signal(signal.SIGINT, lambda number, frame: came.append((number, frame)))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, handle)
    if came:
        handle(*came[0])


def _die_quietly() -> None:
    """An interrupt from the terminal goes to all processes; this program says once that it ends."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    if hasattr(signal, "pthread_sigmask"):
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
