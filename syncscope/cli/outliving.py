"""What a program leaves behind when its script is over, and Python ends or waits for: executors, threads, and processes
of ``multiprocessing``."""

from __future__ import annotations

import atexit
import contextlib
import sys
import threading
import weakref
from collections.abc import Set
from typing import Any

EXECUTORS = ("concurrent.futures.thread", "concurrent.futures.process")


def wait_for_threads() -> None:
    """Shut the program's executors down and wait for its threads, as Python does before it ends.

    What executors were given is done first. Executors of ours that begin later are not concerned, as they would be if
    Python's own functions for it were called. Does nothing where somebody else asked to be told that Python ends.
    """
    if not _only_executors_are_told():
        return
    left = set()
    for call in reversed(threading._threading_atexits):  # type: ignore[attr-defined]
        for thread in _threads_of(_module_of(call)):
            executor = _executor_of(thread)
            if executor is None:
                left.add(thread)  # Python knows how to tell it to end
            elif (known := executor()) is not None:
                with contextlib.suppress(Exception):
                    known.shutdown(wait=True)
    for thread in threading.enumerate():
        if thread is not threading.current_thread() and not thread.daemon and thread not in left:
            thread.join()


def wait_for_processes(recorded: Set[int]) -> None:
    """Where processes are left that Python waits for, or that are still being ``recorded`` (their ids), run the
    program's exit handlers now, as Python does then: they end processes, or wait for them. A rank may not end before
    this one has destroyed its process group, which Lightning and others do in such a handler."""
    multiprocessing = sys.modules.get("multiprocessing.process")
    children = multiprocessing.active_children() if multiprocessing is not None else ()
    if (recorded or any(not child.daemon for child in children)) and _only_executors_are_told():
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


def _threads_of(module: str) -> list[threading.Thread]:
    """The threads of a module's executors that have not been shut down."""
    name = "_threads_queues" if module.endswith("thread") else "_threads_wakeups"
    return list(getattr(sys.modules.get(module), name, ()))


def _executor_of(thread: threading.Thread) -> weakref.ref[Any] | None:
    """The executor that ``thread`` works for or manages. Nobody else has it where it is gone, and its threads end once
    their work is done. None where it cannot be told."""
    reference = getattr(thread, "executor_reference", None) or next(iter(getattr(thread, "_args", ())), None)
    return reference if isinstance(reference, weakref.ref) else None
