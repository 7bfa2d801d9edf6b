"""A pool of processes for the ranks of a run.

A process that dies, for example because it takes too much memory, takes the pool with it. Its traces are then tried
again, each alone, so that only a trace that kills its process again is lost.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import signal
import threading
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, Future, ProcessPoolExecutor, wait
from types import FrameType
from typing import Any

from syncscope.analysis.engine import Progress
from syncscope.analysis.rank import Rank, unread
from syncscope.trace.memory import keep_freed

AHEAD = 2
"""Traces given to each process in advance, so that none waits for the next."""

DIED = "the process that read it was killed (by the system, for its memory?)"

Task = tuple[Callable[..., Rank], tuple[Any, ...]]
"""A function and what to call it with."""

Keep = Callable[[int, Rank], None]
"""Called with the number of each task and its result, as they come."""


class Pool:
    """Processes that run one task for each path.

    loky 3.7 was tried in its place: a killed worker fails every task that is not done, as here, so what follows is
    needed all the same; a pool takes 1.9 s to start instead of 0.8, and 0.04 from the second on; Ctrl-C waits for the
    tasks under way.
    """

    def __init__(self, jobs: int, module: str) -> None:
        """``jobs`` processes, in each of which ``module`` is imported first."""
        self._jobs = jobs
        # A fork of a program with threads may hang; a fresh process, or a fork of one, does not.
        ways = multiprocessing.get_all_start_methods()
        self._context = multiprocessing.get_context("forkserver" if "forkserver" in ways else "spawn")
        if "forkserver" in ways:
            self._context.set_forkserver_preload([module])
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
        pool = ProcessPoolExecutor(jobs, mp_context=self._context, initializer=_begin)
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


def _begin() -> None:
    """Runs first in each process. None runs any program but ours."""
    _die_quietly()
    keep_freed()


def _die_quietly() -> None:
    """An interrupt from the terminal goes to all processes; this program says once that it ends."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    if hasattr(signal, "pthread_sigmask"):
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
