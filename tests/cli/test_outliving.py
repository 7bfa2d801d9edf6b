"""Threads and executors that outlive the script are waited for, unless somebody is to be told first that Python ends;
and processes are ended as Python ends them."""

from __future__ import annotations

import atexit
import concurrent.futures.process
import concurrent.futures.thread as executor
import functools
import multiprocessing
import threading
import time
import weakref
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from syncscope.cli.outliving import wait_for_processes, wait_for_threads


@pytest.fixture(autouse=True)
def _no_executors_of_other_tests(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(executor, "_threads_queues", weakref.WeakKeyDictionary())
    monkeypatch.setattr(concurrent.futures.process, "_threads_wakeups", weakref.WeakKeyDictionary())


def kept_in_a_closure(func: Callable[..., Any], *arg: Any, **kwargs: Any) -> Callable[[], Any]:
    """As ``threading`` keeps it from Python 3.12 on, ..."""
    return lambda: func(*arg, **kwargs)


def kept_in_a_partial(func: Callable[..., Any], *arg: Any, **kwargs: Any) -> Callable[[], Any]:
    """... and as it did before."""
    return functools.partial(func, *arg, **kwargs)


def mine() -> None:
    """Of nobody's executor."""


@pytest.mark.parametrize("keep", [kept_in_a_closure, kept_in_a_partial])
@pytest.mark.parametrize(("told", "waits"), [(executor._python_exit, True), (mine, False)])
def test_threads_are_waited_for_where_only_executors_are_told(
    keep: Callable[..., Any], told: Callable[..., Any], waits: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(threading, "_threading_atexits", [keep(told)])
    go_on = threading.Event()
    thread = threading.Thread(target=go_on.wait)
    thread.start()
    threading.Timer(0.2, go_on.set).start() if waits else None
    wait_for_threads()
    assert thread.is_alive() is not waits
    go_on.set()
    thread.join()


def test_executors_do_what_they_were_given_and_end() -> None:
    done: list[int] = []

    def work(number: int) -> None:
        time.sleep(0.05)
        done.append(number)

    pool = executor.ThreadPoolExecutor(1)
    for number in range(3):
        pool.submit(work, number)
    wait_for_threads()
    assert done == [0, 1, 2]
    with pytest.raises(RuntimeError, match="after shutdown"):
        pool.submit(done.clear)


def test_executors_that_begin_later_work() -> None:
    executor.ThreadPoolExecutor(1).submit(int)
    wait_for_threads()
    with executor.ThreadPoolExecutor(1) as ours:
        assert ours.submit(int).result() == 0


def test_threads_of_an_executor_that_is_not_known_are_left_to_python(monkeypatch: pytest.MonkeyPatch) -> None:
    go_on = threading.Event()
    thread = threading.Thread(target=go_on.wait)
    monkeypatch.setitem(executor._threads_queues, thread, None)
    thread.start()
    wait_for_threads()
    assert thread.is_alive()
    go_on.set()
    thread.join()


@pytest.mark.parametrize(
    ("daemon", "recorded", "ends"),
    [(True, set(), False), (True, {7}, True), (False, set(), True), (True, {8}, True)],
)
def test_exit_handlers_end_processes_that_are_recorded_or_waited_for(
    daemon: bool, recorded: set[int], ends: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(threading, "_threading_atexits", [])
    monkeypatch.setattr(multiprocessing.process, "active_children", lambda: [SimpleNamespace(daemon=daemon, pid=7)])
    ran: list[bool] = []
    monkeypatch.setattr(atexit, "_run_exitfuncs", lambda: ran.append(True))
    wait_for_processes(recorded)
    assert bool(ran) is ends
