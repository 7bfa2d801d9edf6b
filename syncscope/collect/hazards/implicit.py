"""Waits inside operators: those for a stream that a program does not spell out.

In its sync debug mode PyTorch warns at every wait for a stream that its own code makes, in the very function that
waits (``c10::cuda::stream_synchronize`` and ``memcpy_and_sync``). The warning reaches Python when the C function that
Python called returns, which may be many operators later, or never: a call through ``torch.ops`` prints it on stderr.
So each operator runs inside of a C function of its own, and the warning arrives with the operator.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from types import FrameType
from typing import Any

from syncscope.collect.features import SYNC_DEBUG_MODE, lacking
from syncscope.collect.hazards.runtime import Runtime
from syncscope.collect.hazards.vector_clocks import Clocks
from syncscope.collect.sites.sync_debug import sync_debug_mode


class _Here(threading.local):
    """What this thread is doing."""

    stream: int | None = None
    """The stream of the operator that runs."""
    explicit = False
    """Inside of a wait that names its stream."""


class ImplicitWaits:
    """Reports the waits inside operators to ``clocks``, from ``open`` to ``close``."""

    def __init__(self, torch: Any, clocks: Clocks, runtime: Runtime) -> None:
        self._torch = torch
        self._clocks = clocks
        self._runtime = runtime
        # Calls its first argument. Anything that Python reaches by a C function of PyTorch gets its warnings from it;
        # this one does nothing else, but for switching off ``__torch_function__`` of subclasses, which operators below
        # the dispatcher do not call anyway.
        self._deliver = torch._C._disabled_torch_function_impl
        self._here = _Here()
        self._listening = False

    def open(self) -> None:
        if not lacking(self._torch, SYNC_DEBUG_MODE):  # as builds for the CPU do
            sync_debug_mode.listen(self._torch, self._warned)
            self._listening = True

    def close(self) -> None:
        if self._listening:
            self._listening = False
            sync_debug_mode.unlisten(self._warned)

    def run(self, stream: int | None, call: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """``call(*args, **kwargs)``, whose waits for ``stream`` are known when it returns. Without a stream they are
        taken to be for the current ones."""
        outer, self._here.stream = self._here.stream, stream
        sync_debug_mode.hear()  # the count switches warnings off where the program calls an operator by name
        try:
            result, error = self._deliver(_attempt, (), (call, args, kwargs))
        finally:
            sync_debug_mode.hear_no_more()
            self._here.stream = outer
        if error is None:
            return result
        try:
            raise error
        finally:
            del error  # which holds this frame

    def run_explicit(self, call: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """``call(*args, **kwargs)``, a wait that the caller reports itself: its warning is not counted."""
        outer, self._here.explicit = self._here.explicit, True
        try:
            return call(*args, **kwargs)
        finally:
            self._here.explicit = outer

    def _warned(self, frame: FrameType) -> None:
        if self._here.explicit:
            return
        stream = self._here.stream
        for one in self._runtime.current_streams() if stream is None else (stream,):
            self._clocks.host_waits_for_stream(one)


def _attempt(
    call: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
) -> tuple[Any, BaseException | None]:
    """What ``call`` returns, or what it raises. The warnings are delivered afterwards, by Python code, and no Python
    code may run while an exception is on its way."""
    try:
        return call(*args, **kwargs), None
    except BaseException as error:
        return None, error
