"""Step boundaries by the clock, for programs that have no steps we can see."""

from __future__ import annotations

import contextlib
import ctypes
import os
import queue
import sys
import threading
import warnings
from collections.abc import Callable
from types import FrameType

_HERE = os.path.dirname(__file__)

HOOKS = (
    str(warnings.__file__),
    os.path.join(os.path.dirname(str(warnings.__file__)), "_py_warnings.py"),  # since Python 3.14
    *(os.path.join(_HERE, folder, "") for folder in ("bare", "count", "phases", "sites")),
    *(os.path.join(_HERE, f"{name}.py") for name in ("collector", "counting", "schedule", "windows", "profiler")),
)
"""Files and folders of the code that records and counts a wait once it is over, and of other work of ours."""

AROUND = tuple(os.path.join(_HERE, "phases", name) for name in ("checkpoints.py", "modules.py", "signals.py"))
"""Wrap whole calls of modules and loaders, saves and loads, in which a program may spend its life."""

RETRY = 0.0005
"""Seconds until a tick is tried again that came while a wait was being recorded."""


class Timer:
    """Calls ``tick`` on the main thread, between two bytecodes of the program, ``seconds`` after the last tick ended.

    It never ticks between a wait and its record: a window that ends there would miss the wait. ``SystemExit`` and
    ``KeyboardInterrupt`` in a tick, and any exception that another thread or a signal raises meanwhile, reach the
    program.
    """

    def __init__(self, seconds: float, tick: Callable[[], None]) -> None:
        self._seconds = seconds
        self._tick = tick
        self._closed = False
        self._postponed = False
        # A tick can come in the midst of ``close``, on the same thread. Unlike an event's lock, this allows it.
        self._wakes: queue.SimpleQueue[None] = queue.SimpleQueue()
        self._thread: threading.Thread | None = None

    def open(self) -> None:
        self._thread = threading.Thread(target=self._run, name="syncscope-timer", daemon=True)
        self._thread.start()

    def close(self) -> None:
        self._closed = True
        self._wakes.put(None)

    def _tick_unless_busy(self) -> None:
        try:
            self._postponed = _in_a_hook(sys._getframe())
            if not self._closed and not self._postponed:
                self._tick()
        except Exception:  # ours
            pass
        except SystemExit:
            self._closed = True
            raise
        finally:
            self._wakes.put(None)

    def _run(self) -> None:
        api, call = ctypes.pythonapi, ctypes.py_object(_PendingCall(self._tick_unless_busy))
        api.Py_IncRef(call)  # for good: one that is queued may run after all else is gone
        while True:
            with contextlib.suppress(queue.Empty):  # the time is up
                self._wakes.get(timeout=RETRY if self._postponed else self._seconds)
            if self._closed:
                return
            # A pending call runs on the main thread and needs no signal of the program's.
            if api.Py_AddPendingCall(api.PyObject_IsTrue, call) == 0:  # else the queue is full: try later
                self._wakes.get()


class _PendingCall:
    """Calls ``function`` when Python asks whether this is true.

    ``PyObject_IsTrue`` has the type that a pending call must have and, unlike a callback of ctypes, passes on what is
    raised in it.
    """

    def __init__(self, function: Callable[[], None]) -> None:
        self._function = function

    def __bool__(self) -> bool:
        self._function()
        return False


def _in_a_hook(frame: FrameType | None) -> bool:
    """Whether ``frame`` or one around it records a wait."""
    while frame is not None:
        file = frame.f_code.co_filename
        if file.startswith(HOOKS) and file not in AROUND:
            return True
        frame = frame.f_back
    return False


def raise_on_main_thread(kind: type[BaseException]) -> None:
    """Raise ``kind`` on the main thread as soon as that runs Python. Called on another thread."""
    main = ctypes.c_ulong(threading.main_thread().ident or 0)
    ctypes.pythonapi.PyThreadState_SetAsyncExc(main, ctypes.py_object(kind))
