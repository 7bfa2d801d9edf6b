"""Step boundaries by the clock, for programs that have no steps we can see."""

from __future__ import annotations

import ctypes
import sys
import threading
import time
import warnings
from collections.abc import Callable
from types import FrameType

from syncscope.collect import sites, stacks, warn, wrap

HOOKS = frozenset(str(module.__file__) for module in (warnings, warn, wrap, sites, stacks))
"""Files of the code that notes a wait once it is over."""

SOON = 0.0005
"""Seconds until a tick that came while a wait was noted is tried again."""


class Timer:
    """Calls ``tick`` on the main thread, between two bytecodes of the program, each time ``seconds`` seconds after the
    last one was over. Never between a wait and its note, which a window that ends there would miss."""

    def __init__(self, seconds: float, tick: Callable[[], None]) -> None:
        self._seconds = seconds
        self._stop = threading.Event()
        self._over = threading.Event()
        self._amid = False
        self._thread: threading.Thread | None = None

        def call(_: object) -> int:
            self._amid = _noting(sys._getframe())
            if not self._stop.is_set() and not self._amid:
                try:
                    tick()
                except SystemExit as stop:
                    # An exception cannot leave a pending call made through ctypes: another thread sends it.
                    self._stop.set()
                    threading.Thread(target=_send, args=(type(stop),), daemon=True).start()
            self._over.set()
            return 0

        # A pending call runs on the main thread and needs no signal of the program's. Kept alive by this object.
        self._call = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p)(call)

    def open(self) -> None:
        self._thread = threading.Thread(target=self._run, name="syncscope-timer", daemon=True)
        self._thread.start()

    def close(self) -> None:
        self._stop.set()
        self._over.set()

    def _run(self) -> None:
        while not self._stop.wait(SOON if self._amid else self._seconds):
            self._over.clear()
            if ctypes.pythonapi.Py_AddPendingCall(self._call, None) == 0:  # else the queue is full: later
                self._over.wait()


def _noting(frame: FrameType | None) -> bool:
    while frame is not None:
        if frame.f_code.co_filename in HOOKS:
            return True
        frame = frame.f_back
    return False


def _send(kind: type[BaseException]) -> None:
    """Raise ``kind`` on the main thread, once the pending call has returned."""
    time.sleep(0.05)
    main = ctypes.c_ulong(threading.main_thread().ident or 0)
    ctypes.pythonapi.PyThreadState_SetAsyncExc(main, ctypes.py_object(kind))
