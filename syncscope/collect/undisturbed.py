"""Work of ours in the middle of the program, which must neither be cut in half nor leave anything behind."""

from __future__ import annotations

import _imp
import contextlib
import signal
import threading
import warnings
from collections.abc import Iterator
from types import FrameType
from typing import Any

from syncscope.collect.sites.sync_debug import sync_debug_mode

DEFERRED = (signal.SIGINT, signal.SIGTERM)

_WARN = warnings.warn
"""Python's own: the program has not begun."""


@contextlib.contextmanager
def own_warnings() -> Iterator[None]:
    """Keep what our imports warn of from a program that is over: it is silent, and calls no function of its own."""
    _free_import_lock()
    with warnings.catch_warnings(), _own_warn():
        warnings.simplefilter("ignore")
        yield


@contextlib.contextmanager
def _own_warn() -> Iterator[None]:
    """Put Python's own ``warnings.warn`` in the place of one of the program's."""
    theirs = warnings.warn
    warnings.warn = _WARN
    try:
        yield
    finally:
        warnings.warn = theirs


@contextlib.contextmanager
def undisturbed() -> Iterator[None]:
    """Let signals that Python handles wait until the block is over, and put back the warnings filters that imports add.

    An interrupt in the middle of an import would leave half a module to the program. A second signal does not wait.
    """
    _free_import_lock()
    filters = list(warnings.filters)
    waiting: list[tuple[int, FrameType | None]] = []
    handlers: dict[int, Any] = {}

    def restore() -> None:
        for number, handler in handlers.items():
            signal.signal(number, handler)

    def later(number: int, frame: FrameType | None) -> None:
        waiting.append((number, frame))
        if len(waiting) > 1:
            restore()
            handlers[number](number, frame)

    if threading.current_thread() is threading.main_thread():
        found = {number: signal.getsignal(number) for number in DEFERRED}
        handlers = {number: handler for number, handler in found.items() if callable(handler)}
        for number in handlers:
            signal.signal(number, later)
    try:
        with sync_debug_mode.quietly(), _own_warn():
            try:
                yield
            finally:
                restore()
                _put_back(filters)
    finally:
        if len(waiting) == 1:
            number, frame = waiting[0]
            handlers[number](number, frame)


def _free_import_lock() -> None:
    """Free the lock of Python's imports where an interrupt left this thread with it: no other thread could import.

    ``importlib._bootstrap._get_module_lock`` takes it in a callback, out of which an interrupt cannot come (CPython
    3.10 to 3.13).
    """
    with contextlib.suppress(RuntimeError):  # it is another thread's
        while _imp.lock_held():
            _imp.release_lock()


def _put_back(filters: list[Any]) -> None:
    """Take out the filters that were added, but for ours, which may have come or gone meanwhile."""
    ours = {id(entry) for entry in sync_debug_mode.filters}
    kept = [entry for entry in warnings.filters if id(entry) in ours]
    kept += (entry for entry in filters if id(entry) not in ours)
    if kept != warnings.filters:  # Python shows again what it shows only once, when it is told of a change
        warnings.filters[:] = kept  # type: ignore[index]
        warnings._filters_mutated()  # type: ignore[attr-defined]
