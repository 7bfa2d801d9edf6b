"""``syncscope.guard``: a wait inside the block raises, warns or logs at its line, without profiling."""

from __future__ import annotations

import functools
import inspect
import logging
import sys
import warnings
from collections.abc import Callable, Collection
from types import FrameType, TracebackType
from typing import Any, Literal, get_args

from syncscope.collect.annotations import compiling
from syncscope.collect.live.hold import Hold, check_hold
from syncscope.collect.live.waits import (
    PIN,
    Direction,
    LiveWait,
    direction_of,
    fix_for,
    is_known,
    program_line,
    waiting_call,
)
from syncscope.collect.live.watching import Threads, check_threads, open_blocks

Action = Literal["raise", "warn", "log"]

log = logging.getLogger("syncscope.guard")


class SyncError(RuntimeError):
    """The guarded code waits for the device; ``str`` names the line, the operation and a way out."""


class SyncWarning(UserWarning):
    """The guarded code waits for the device."""


class guard:
    """Watch this thread for waits: ``with syncscope.guard("raise"):``, also a decorator of functions and coroutines.

    ``action``: ``"raise"`` a ``SyncError``, ``"warn"`` with a ``SyncWarning``, or ``"log"`` to the logger
    ``syncscope.guard``. ``allow`` names directions of copies to let pass, like JAX's ``transfer_guard``:
    ``"device-to-host"``, ``"host-to-device"``, ``"unknown"`` (waits whose entry point does not say).
    ``guard("raise", allow=ALL)`` lets everything pass, and ``syncscope.expected(reason)`` what is inside of it. Guards
    nest: the innermost of the thread decides. A guard is one of its thread and asyncio task, and of the backward that
    they run; with ``threads="all"`` it is one of all threads, where none of their own is inside of it.

    It sees what the count of a run sees. The exception comes *before* explicit waits (``torch.cuda.synchronize()``, of
    streams and events, ``empty_cache()``), copies by ``to``, ``cuda``, ``cpu`` and ``copy_``, also those of pageable
    memory that only look asynchronous, and what waits in MAGMA, cuSOLVER and thrust. It comes *after* the other waits,
    also of operators called by ``torch.ops`` and of TorchScript. What PyTorch does once to compile or to capture a
    graph passes. It does not see waits in C++ extensions that Python calls without ``torch.ops``, of libraries that
    call CUDA themselves, and of ``torch.Event``.

    ``hold_ms`` finds these too: a kernel holds the current stream and the default one for so many milliseconds, and a
    block that is still there when they are over waited, or is slow by itself. That is told at the end of the block, not
    where another exception leaves it, a wait was seen, or a CUDA graph is being captured.
    Raises ``ValueError`` for an unknown action, direction or choice of threads, and for ``hold_ms`` with directions
    ``allow`` of which ``"unknown"`` is one; ``RuntimeError`` on entry where PyTorch cannot hold the device.
    """

    decides = True
    hears_expected = False

    def __init__(
        self,
        action: Action = "raise",
        *,
        allow: Collection[Direction] = (),
        threads: Threads = "own",
        hold_ms: float | None = None,
    ) -> None:
        if action not in get_args(Action):
            raise ValueError(f"unknown action {action!r}: choose from {', '.join(get_args(Action))}")
        if unknown := set(allow) - set(get_args(Direction)):
            raise ValueError(f"unknown direction {min(unknown)!r}: choose from {', '.join(get_args(Direction))}")
        check_threads(threads)
        check_hold(hold_ms)
        if hold_ms is not None and "unknown" in allow:
            raise ValueError('hold_ms finds waits of the direction "unknown", which allow lets pass')
        self.action = action
        self.allow = frozenset(allow)
        self.threads = threads
        self.hold_ms = hold_ms
        self._opened: list[tuple[bool, Hold | None]] = []

    def __enter__(self) -> guard:
        if compiling():
            return self
        there = _has_gpu()  # without one there is nothing to wait for
        hold = None
        if there:
            open_blocks.enter(self, everywhere=self.threads == "all")
            if self.hold_ms is not None:
                hold = self._begin_hold(self.hold_ms)
        self._opened.append((there, hold))
        return self

    def _begin_hold(self, hold_ms: float) -> Hold:
        import torch

        hold = Hold(hold_ms)
        try:
            hold.begin(torch, everywhere=self.threads == "all")
        except BaseException:
            open_blocks.leave(self)
            raise
        return hold

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if compiling():
            return
        there, hold = self._opened.pop()
        if not there:
            return
        try:
            slow = _end_hold(hold, failed=kind is not None)
        finally:
            open_blocks.leave(self)
        if slow is not None:
            self._act(program_line(sys._getframe(1)), slow)

    def __call__(self, func: Callable[..., Any]) -> Any:
        """Guard each call of ``func``. Raises ``TypeError`` for a generator, whose body runs between its caller's."""
        if inspect.isgeneratorfunction(func) or inspect.isasyncgenfunction(func):
            raise TypeError("a generator cannot be guarded: write the with statement inside of it")
        if not inspect.iscoroutinefunction(func):

            @functools.wraps(func)
            def guarded_call(*args: Any, **kwargs: Any) -> Any:
                if compiling():
                    return func(*args, **kwargs)
                with self._again():
                    return func(*args, **kwargs)

            return guarded_call

        @functools.wraps(func)
        async def guarded(*args: Any, **kwargs: Any) -> Any:
            with self._again():
                return await func(*args, **kwargs)

        return guarded

    def _again(self) -> guard:
        """One of its own for each call: calls on several threads end in any order."""
        return guard(self.action, allow=self.allow, threads=self.threads, hold_ms=self.hold_ms)

    def on_wait(self, wait: LiveWait) -> None:
        """Act on a wait that is over, or about to begin."""
        if len(self.allow) == len(ALL):
            return
        direction = wait.direction or direction_of(waiting_call(wait.frame)[1])
        if direction in self.allow:
            return
        self._act(program_line(wait.frame), describe(wait, direction))

    def _act(self, frame: FrameType, what: str) -> None:
        message = f"{frame.f_code.co_filename}:{frame.f_lineno}: {what}"
        if self.action == "raise":
            raise SyncError(message)
        if self.action == "log":
            log.warning("%s", message)
        else:
            warnings.warn_explicit(message, SyncWarning, frame.f_code.co_filename, frame.f_lineno)


def describe(wait: LiveWait, direction: Direction) -> str:
    """What waits at the program's line, and a way out."""
    _, inner = waiting_call(wait.frame)
    text, name = waiting_call(program_line(wait.frame))
    what = f"{text or wait.label or 'an operation'} {'waits' if wait.before else 'waited'} for the device ({direction})"
    if wait.why:
        return f"{what}: {wait.why}. {PIN}"
    otherwise = "" if is_known(inner) or is_known(name) else " Or allow this wait with syncscope.guard(allow=…)."
    return f"{what}. {fix_for(inner, name)}{otherwise}"


def _end_hold(hold: Hold | None, *, failed: bool) -> str | None:
    if hold is None:
        return None
    import torch

    return hold.end(torch, failed=failed)


def _has_gpu() -> bool:
    import torch

    return bool(torch.cuda.is_available())


ALL: tuple[Direction, ...] = get_args(Direction)
