"""What a program leaves behind when its script is over, and Python waits for: threads, and processes of
``multiprocessing``."""

from __future__ import annotations

import atexit
import sys
import threading
from typing import Any

EXECUTORS = ("concurrent.futures.thread", "concurrent.futures.process")


def wait_for_threads() -> None:
    """Wait for the program's threads, as Python does before it ends. Threads of executors are left to Python, which
    tells them to end first; where somebody else asked to be told, all are."""
    if not _only_executors_are_told():
        return
    executors = [*_threads_of("concurrent.futures.thread"), *_threads_of("concurrent.futures.process")]
    for thread in threading.enumerate():
        if thread is not threading.current_thread() and not thread.daemon and thread not in executors:
            thread.join()


def wait_for_processes() -> None:
    """Where processes are left that Python waits for, run the program's exit handlers now, as Python does then: they
    end processes, or wait for them."""
    multiprocessing = sys.modules.get("multiprocessing.process")
    if multiprocessing is None or not _only_executors_are_told() or any(_threads_of("concurrent.futures.process")):
        return
    if any(not child.daemon for child in multiprocessing.active_children()):
        atexit._run_exitfuncs()


def _only_executors_are_told() -> bool:
    """Whether nobody but Python's executors asked to be told that Python ends, before threads are waited for."""
    told = getattr(threading, "_threading_atexits", None)
    return told is not None and all(_module_of(call) in EXECUTORS for call in told)


def _module_of(call: Any) -> str:
    """The module of the function that ``threading`` calls: in a ``partial``, since Python 3.12 in a closure."""
    cells = dict(
        zip(
            getattr(getattr(call, "__code__", None), "co_freevars", ()),
            getattr(call, "__closure__", None) or (),
            strict=True,
        )
    )
    called = cells["func"].cell_contents if "func" in cells else getattr(call, "func", call)
    return str(getattr(called, "__module__", ""))


def _threads_of(module: str) -> list[Any]:
    """The threads of a module's executors that have not been shut down."""
    name = "_threads_queues" if module.endswith("thread") else "_threads_wakeups"
    return list(getattr(sys.modules.get(module), name, ()))
