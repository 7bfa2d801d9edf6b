"""See waits and orders that a program makes in Python: with streams, events, whole devices, collectives and futures.

PyTorch's own trace of these (``torch.cuda._gpu_trace``) would also show those made in C++, but it calls Python where
an exception may be on its way, which replaces the exception, and it can never be switched off. What C++ orders is
known otherwise (``backward``, ``implicit``) or taken as ordered.
"""

from __future__ import annotations

import ctypes
import gc
from collections.abc import Callable
from typing import Any

from syncscope.collect.hazards.implicit import ImplicitWaits
from syncscope.collect.hazards.runtime import Runtime
from syncscope.collect.hazards.vector_clocks import Clocks
from syncscope.collect.patching import Patches

Report = Callable[[Any, Any, Any], None]
"""``report(object, argument, result)`` after a method of ``object`` with at most one argument has returned."""


class SynchronizationHooks:
    """Keeps ``clocks`` informed from ``open`` to ``close``.

    A fault of ours never reaches the program: ``failed`` gets it, and the call goes unseen.
    """

    def __init__(
        self,
        torch: Any,
        clocks: Clocks,
        runtime: Runtime,
        implicit: ImplicitWaits,
        failed: Callable[[str, Exception], None],
    ) -> None:
        self._torch = torch
        self._clocks = clocks
        self._runtime = runtime
        self._implicit = implicit
        self._failed = failed
        self._replaced = Patches()

    def open(self) -> None:
        torch = self._torch
        for stream in (torch.cuda.Stream, getattr(torch, "Stream", None)):
            if stream is not None:
                self._hook_stream(_assignable(stream))
        for event in (torch.cuda.Event, getattr(torch, "Event", None)):
            if event is not None:
                self._hook_event(_assignable(event))
        self._hook_import(torch.cuda.Event)
        for name in ("_cuda_synchronize", "_accelerator_synchronizeDevice"):
            self._hook(torch._C, name, lambda *_: self._clocks.host_waits_for_all())
        distributed = getattr(torch._C, "_distributed_c10d", None)
        if distributed is not None:
            for name in ("wait", "synchronize", "block_current_stream"):
                self._replaced.replace(distributed.Work, name, self._join_all_after)
        for name in ("wait", "value"):
            self._replaced.replace(torch._C.Future, name, self._join_all_after)

    def close(self) -> None:
        self._replaced.restore()

    def _hook_stream(self, kind: Any) -> None:
        clocks, stream, event, hook = self._clocks, self._stream, self._event, self._hook
        hook(kind, "synchronize", lambda this, _, __: _report(clocks.host_waits_for_stream, stream(this)))
        hook(kind, "query", self._stream_queried)
        hook(kind, "record_event", lambda this, _, result: _report(clocks.record, event(result), stream(this)))
        hook(kind, "wait_event", lambda this, other, _: _report(clocks.wait, stream(this), event(other)))
        hook(kind, "wait_stream", lambda this, other, _: _report(clocks.wait_for_stream, stream(this), stream(other)))

    def _hook_event(self, kind: Any) -> None:
        clocks, event, hook = self._clocks, self._event, self._hook
        hook(kind, "record", lambda this, at, _: _report(clocks.record, event(this), self._stream_or_current(at)))
        hook(kind, "wait", lambda this, at, _: _report(clocks.wait, self._stream_or_current(at), event(this)))
        hook(kind, "synchronize", lambda this, _, __: _report(clocks.host_waits_for_event, event(this)))
        hook(kind, "query", self._event_queried)
        hook(kind, "elapsed_time", self._elapsed_time_taken)

    def _stream_queried(self, stream: Any, _: Any, over: bool) -> None:
        if over:
            _report(self._clocks.host_waits_for_stream, self._stream(stream))

    def _event_queried(self, event: Any, _: Any, over: bool) -> None:
        if over:
            _report(self._clocks.host_waits_for_event, self._event(event))

    def _elapsed_time_taken(self, begin: Any, end: Any, _: Any) -> None:
        """``Event.elapsed_time`` fails unless both events are over."""
        for event in (begin, end):
            _report(self._clocks.host_waits_for_event, self._event(event))

    def _hook(self, owner: Any, name: str, report: Report) -> None:
        """Call ``report`` after each call of ``owner.name``."""
        run = self._implicit.run_explicit

        def make(original: Any) -> Any:
            def wrapper(*args: Any, **kwargs: Any) -> Any:
                result = run(original, args, kwargs)
                this, argument, *_ = (*args, *kwargs.values(), None, None)
                self._try(name, lambda: report(this, argument, result))
                return result

            return wrapper

        self._replaced.replace(owner, name, make)

    def _hook_import(self, kind: type) -> None:
        """``Event.from_ipc_handle``: the event of another process."""
        original = vars(kind).get("from_ipc_handle")
        if original is None:
            return

        def wrapper(cls: type, *args: Any, **kwargs: Any) -> Any:
            event = original.__get__(None, cls)(*args, **kwargs)
            self._try("from_ipc_handle", lambda: _report(self._clocks.record_elsewhere, self._event(event)))
            return event

        self._replaced.replace(kind, "from_ipc_handle", lambda _: classmethod(wrapper))

    def _join_all_after(self, method: Any) -> Any:
        """A wait for work on streams that only C++ knows: the current streams come after everything."""

        def wrapper(*args: Any, **kwargs: Any) -> Any:
            result = self._implicit.run(None, method, args, kwargs)
            self._try("a collective", lambda: self._clocks.wait_for_all(*self._runtime.current_streams()))
            return result

        return wrapper

    def _try(self, name: str, report: Callable[[], None]) -> None:
        try:
            report()
        except Exception as error:
            self._failed(name, error)

    def _stream_or_current(self, stream: Any) -> int | None:
        return self._stream(self._torch.cuda.current_stream() if stream is None else stream)

    def _stream(self, stream: Any) -> int | None:
        """The raw handle of a ``torch.cuda.Stream`` or ``torch.Stream``; ``None`` for one of another device."""
        if not hasattr(stream, "cuda_stream"):
            if stream.device.type != "cuda":
                return None
            stream = self._torch.cuda.Stream(
                stream_id=stream.stream_id, device_index=stream.device_index, device_type=stream.device_type
            )
        return int(stream.cuda_stream)

    @staticmethod
    def _event(event: Any) -> int | None:
        """The raw handle of a ``torch.cuda.Event`` or ``torch.Event``; ``None`` for one that was never recorded.

        A handle may be that of an earlier event that is gone. The new event has then been recorded since, which is
        seen."""
        return int(event.cuda_event if hasattr(event, "cuda_event") else event.event_id) or None


def _report(call: Callable[..., None], *handles: int | None) -> None:
    """``call(*handles)``, unless one is missing."""
    if None not in handles:
        call(*handles)


def _assignable(kind: Any) -> Any:
    """``kind``, or what stands for its methods where it is a C type whose attributes cannot be assigned."""
    immutable = 1 << 8  # Py_TPFLAGS_IMMUTABLETYPE
    static = not kind.__flags__ & 1 << 9  # Py_TPFLAGS_HEAPTYPE; before Python 3.10 the only sign
    return _StaticType(kind) if static or kind.__flags__ & immutable else kind


class _StaticType:
    """The attributes of a C type, which ``setattr`` refuses: ``torch.Stream`` and ``torch.Event``.

    Their methods are called on objects that C++ creates, so that no class in Python can stand in for them.
    """

    __slots__ = ("_kind",)
    _kind: type

    def __init__(self, kind: type) -> None:
        object.__setattr__(self, "_kind", kind)

    @property
    def __dict__(self) -> Any:  # type: ignore[override]
        return vars(self._kind)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._kind, name)

    def __setattr__(self, name: str, value: Any) -> None:
        self._attributes()[name] = value
        self._changed()

    def __delattr__(self, name: str) -> None:
        del self._attributes()[name]
        self._changed()

    def _attributes(self) -> dict[str, Any]:
        """The dictionary behind the read-only ``vars``."""
        (attributes,) = gc.get_referents(vars(self._kind))
        return attributes  # type: ignore[no-any-return]

    def _changed(self) -> None:
        """Let the interpreter forget where it found attributes of the type."""
        ctypes.pythonapi.PyType_Modified(ctypes.py_object(self._kind))
