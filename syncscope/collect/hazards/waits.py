"""Every event, stream and device wait of the process, told to the clocks.

PyTorch reports them itself, also those in C++ (autograd's between streams, NCCL's, blocking copies), through
``torch.cuda._gpu_trace``, as its own sanitizer uses it. It cannot be switched off again: a process that looked for
hazards keeps paying a little for each launch, with nobody listening. Queries are not reported, so they are wrapped.
"""

from __future__ import annotations

from typing import Any

from syncscope.collect.hazards.clocks import Clocks
from syncscope.collect.hazards.replacing import Replaced


class Waits:
    """Keeps ``clocks`` informed from ``open`` to ``close``."""

    def __init__(self, torch: Any, clocks: Clocks) -> None:
        self._torch = torch
        self._clocks = clocks
        self._listening: list[tuple[list[Any], Any]] = []
        self._replaced = Replaced()

    def open(self) -> None:
        from torch.cuda import _gpu_trace as trace

        clocks = self._clocks
        for registry, callback in (
            (trace.EventCreationCallbacks, clocks.forget),
            (trace.EventDeletionCallbacks, clocks.forget),
            (trace.EventRecordCallbacks, clocks.record),
            (trace.EventWaitCallbacks, self._stream_waits),
            (trace.EventSynchronizationCallbacks, clocks.host_waits_for_event),
            (trace.StreamSynchronizationCallbacks, clocks.host_waits_for_stream),
            (trace.DeviceSynchronizationCallbacks, clocks.host_waits_for_all),
        ):
            registry.add_callback(callback)
            self._listening.append((registry.callback_list, callback))
        self._torch._C._activate_gpu_trace()
        cuda = self._torch.cuda
        self._replaced.replace(cuda.Stream, "query", self._stream_query)
        self._replaced.replace(cuda.Event, "query", self._event_query)
        self._replaced.replace(cuda.Event, "elapsed_time", self._elapsed_time)

    def close(self) -> None:
        while self._listening:
            callbacks, callback = self._listening.pop()
            callbacks.remove(callback)
        self._replaced.restore()

    def _stream_waits(self, event: int, stream: int) -> None:
        self._clocks.wait(stream, event)

    def _stream_query(self, query: Any) -> Any:
        def wrapper(stream: Any) -> Any:
            over = query(stream)
            if over:
                self._clocks.host_waits_for_stream(int(stream.cuda_stream))
            return over

        return wrapper

    def _event_query(self, query: Any) -> Any:
        def wrapper(event: Any) -> Any:
            over = query(event)
            if over:
                self._clocks.host_waits_for_event(int(event.cuda_event))
            return over

        return wrapper

    def _elapsed_time(self, elapsed_time: Any) -> Any:
        """It fails unless both events are over."""

        def wrapper(event: Any, end_event: Any) -> Any:
            milliseconds = elapsed_time(event, end_event)
            for over in (event, end_event):
                self._clocks.host_waits_for_event(int(over.cuda_event))
            return milliseconds

        return wrapper
