"""Threads that outlive the script are waited for, unless somebody is to be told first that Python ends."""

from __future__ import annotations

import concurrent.futures.thread as executor
import functools
import threading
from collections.abc import Callable
from typing import Any

import pytest

from syncscope.cli.outliving import wait_for_threads


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
