"""Ctrl-C and SIGTERM that never leave Python's imports locked for other threads."""

from __future__ import annotations

import _thread
import contextlib
import signal
import time
from collections.abc import Iterator
from types import FrameType

_IMPORT = "<frozen importlib._bootstrap>"
_AGAIN = 0.001
"""Seconds after which an interrupt that came in the midst of an import is tried again."""


def interrupt(number: int, frame: FrameType | None) -> None:
    """Handle SIGINT as Python does, but not in ``importlib`` itself: a little later.

    There an exception can be lost in a callback and leave the lock of all imports taken (``_get_module_lock`` in
    CPython 3.10 to 3.13). The next thread that imports would hang.
    """
    if frame is not None and frame.f_code.co_filename == _IMPORT:
        _thread.start_new_thread(_raise_again, (number,))
    else:
        signal.default_int_handler(number, frame)


class Terminated(BaseException):
    """SIGTERM came: what is being written is taken back on the way out."""


def terminate(number: int, frame: FrameType | None) -> None:
    """Handle SIGTERM by ``Terminated``, but not in ``importlib`` itself, as ``interrupt`` does."""
    if frame is not None and frame.f_code.co_filename == _IMPORT:
        _thread.start_new_thread(_raise_again, (number,))
    else:
        raise Terminated


def _raise_again(number: int) -> None:
    time.sleep(_AGAIN)
    signal.raise_signal(number)


def heed() -> None:
    """Handle SIGINT by ``interrupt`` from now on, unless it is ignored or somebody else's."""
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, interrupt)


@contextlib.contextmanager
def as_python_does() -> Iterator[None]:
    """Handle SIGINT as Python does inside the block, for a program that is not ours, and by ``heed`` after it."""
    if signal.getsignal(signal.SIGINT) is interrupt:
        signal.signal(signal.SIGINT, signal.default_int_handler)
        try:
            yield
        finally:
            heed()
    else:
        yield
