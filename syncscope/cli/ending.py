"""How a process ends that ran a user's program, where Python's own way would take too long or would not come back."""

from __future__ import annotations

import atexit
import contextlib
import gc
import io
import os
import signal
import stat
import sys
import threading
from typing import Any, NoReturn

FILE = io.IOBase.__base__
TEXT = io.TextIOBase.__base__
"""What files derive from, also those that C makes: ``io``'s own classes are not among their bases."""

BUFFERED = (io.BufferedWriter, io.BufferedRandom)
WITHOUT_AN_END = (*BUFFERED, io.BufferedReader, io.BufferedRWPair, io.FileIO, io.BytesIO, io.StringIO)


def die(number: int) -> NoReturn:
    """End by a signal, as Python does after an uncaught ``KeyboardInterrupt``: threads and exit handlers come first."""
    threading._shutdown()  # type: ignore[attr-defined]
    atexit._run_exitfuncs()
    _write_out()
    signal.signal(number, signal.SIG_DFL)
    os.kill(os.getpid(), number)
    os._exit(128 + number)  # where the signal is blocked


def leave(status: int, *, threads: bool = False) -> NoReturn:
    """End without what C runs at exit, and without waiting for ``threads`` that still run, unless told to."""
    if threads:
        threading._shutdown()  # type: ignore[attr-defined]
    atexit._run_exitfuncs()
    _write_out()
    os._exit(status)


def _write_out() -> None:
    """Write what open files still hold, as Python does when it takes down the modules that hold them.

    Of the program's files, only those on a disk: nobody may read a pipe any more. One that has an end of its own, such
    as a compressed one, is closed.
    """
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(AttributeError, ValueError, OSError):  # the program may have closed it
            stream.flush()
    gc.unfreeze()  # the collector does not list what is frozen
    files = [one for one in gc.get_objects() if FILE in type(one).__mro__]
    # What is written through another file comes before it.
    for file in sorted(files, key=lambda one: (TEXT not in type(one).__mro__, type(one) in BUFFERED)):
        with contextlib.suppress(Exception):  # a program's own class of files may do anything
            if not file.closed and file.writable() and stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                _write_out_one(file)


def _write_out_one(file: Any) -> None:
    if TEXT in type(file).__mro__ or type(file) in WITHOUT_AN_END:
        file.flush()
    else:
        file.close()
