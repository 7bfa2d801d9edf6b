"""Tiny traces in code, drawn as one would on paper. Every time is in microseconds since the trace's base.

    trace = (
        TraceBuilder()
        .step(0, 100)
        .op("aten::item", 10, 60)
        .copy("DtoH", call=(12, 3), runs=(20, 5), memory="pinned", bytes=4)
        .stream_sync(16, 50)
        .launch("gemm", call=(70, 5), runs=(80, 15))
        .trace()
    )

Device rows and the calls that launched them share a correlation id, given out in order. ``.json()`` is the file's
bytes, ``.write(path)`` the file, ``.trace()`` what the reader makes of it, ``.events`` the raw events to spoil.
"""

from __future__ import annotations

import gzip
import itertools
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import msgspec

from syncscope.schema.compiling import CompileEvent, CompileKind, CompileSpan, RecordedCompiling, RecordedKernel
from syncscope.schema.counting import CountedWait, PhaseKind, RecordedPhase, RecordedRun
from syncscope.schema.recording import (
    FORMAT,
    Attributed,
    Bare,
    HazardEvent,
    HazardRule,
    HostSample,
    RecordedFrame,
    RecordedSteps,
    Recording,
    SiteEvent,
)
from syncscope.trace.model import Trace
from syncscope.trace.reader import read_bytes

BASE_NS = 1_700_000_000_000_000_000
PID = 4000
TID = 4000
"""Process and main thread. :meth:`TraceBuilder.on` changes the thread of what follows."""

Span = tuple[float, float]
"""Start and length, µs."""

FrameSpec = RecordedFrame | tuple[str, int, str] | tuple[str, int, str, str]
"""A frame of a stack: ``(file, line, function)`` or ``(file, line, function, expression)``."""


class TraceBuilder:
    def __init__(self, *, rank: int | None = None, world_size: int | None = None, vendor: str = "cuda") -> None:
        self.events: list[dict[str, Any]] = []
        self.top: dict[str, Any] = {
            "schemaVersion": 1,
            "deviceProperties": [{"id": 0, "name": "NVIDIA H200", "totalGlobalMem": 150_000_000_000, "numSms": 132}],
        }
        """Keys beside ``traceEvents``; set or delete any before the trace is made."""
        if rank is not None:
            self.top["distributedInfo"] = {"backend": "nccl", "rank": rank, "world_size": world_size or rank + 1}
        self._vendor = vendor
        self._tid = TID
        self._correlation = 0
        self._external = 0
        self._python_id = 0
        self._open_frames: list[tuple[int, int, float]] = []  # (thread, python id, end), innermost last
        self._boundaries: list[float] = []
        self._steps = RecordedSteps(source="none")
        self._recording: dict[str, Any] | None = None
        self._frames: list[RecordedFrame] = []
        self._stacks: list[tuple[int, ...]] = []
        self._sites: list[SiteEvent] = []
        self._samples: list[HostSample] = []
        self._attribution: list[Attributed] | None = None
        self._hazards: list[HazardEvent] | None = None
        self._phases: list[RecordedPhase] = []
        self._counted: list[CountedWait] = []
        self._sources: dict[str, dict[str, str]] = {}
        self._run: dict[str, Any] | None = None
        self._compiled: list[CompileEvent] | None = None
        self._kernels: dict[str, list[int]] = {}
        self._compiling: list[CompileSpan] = []

    # ------------------------------------------------------------------------------------------------- host

    def on(self, tid: int, name: str | None = None) -> TraceBuilder:
        """What follows runs on thread ``tid``, called ``name``."""
        self._tid = tid
        if name is not None:
            self._add({"ph": "M", "name": "thread_name", "pid": PID, "tid": tid, "ts": 0, "args": {"name": name}})
        return self

    def op(
        self, name: str, start: float, dur: float, *, sequence: int | None = None, forward_tid: int = 0
    ) -> TraceBuilder:
        """A PyTorch operator. ``sequence`` its autograd number, ``forward_tid`` set on those of backward."""
        self._external += 1
        args: dict[str, Any] = {"External id": self._external, "Record function id": 0}
        if sequence is not None:
            args |= {"Sequence number": sequence, "Fwd thread id": forward_tid}
        return self._host("cpu_op", name, start, dur, args)

    def annotation(self, name: str, start: float, dur: float) -> TraceBuilder:
        """A ``user_annotation``."""
        return self._host("user_annotation", name, start, dur, {})

    def frame(self, file: str, line: int, function: str, start: float, dur: float) -> TraceBuilder:
        """A Python frame, whose parent is the innermost one of this thread that holds it."""
        return self._frame(f"{file}({line}): {function}", start, dur)

    def unplaced(self, function: str, start: float, dur: float) -> TraceBuilder:
        """The row of a function that has neither a file nor a line."""
        return self._frame(f"<function {function} at 0x7f0000000000>", start, dur)

    def builtin(self, name: str, start: float, dur: float, *, of: str = "Tensor") -> TraceBuilder:
        """The frame of a method in C, as of ``tensor.item()``."""
        return self._frame(f"<built-in method {name} of {of} object at 0x7f0000000000>", start, dur)

    def call(
        self,
        name: str,
        start: float,
        dur: float,
        *,
        correlation: int | None = None,
        args: dict[str, Any] | None = None,
        category: str = "cuda_runtime",
    ) -> TraceBuilder:
        """A runtime call, with a correlation of its own unless one is given."""
        joined = self._next() if correlation is None else correlation
        return self._host(category, name, start, dur, {"cbid": 0, "correlation": joined, **(args or {})})

    def stream_sync(self, start: float, dur: float, *, stream: int = 7, record: bool = False) -> TraceBuilder:
        """The host waits for a stream; ``record`` adds the ``cuda_sync`` row."""
        return self._sync("StreamSynchronize", "Stream Sync", start, dur, stream, record)

    def device_sync(self, start: float, dur: float, *, record: bool = False) -> TraceBuilder:
        """The host waits for the device."""
        return self._sync("DeviceSynchronize", "Context Sync", start, dur, -1, record)

    def event_sync(self, start: float, dur: float, *, stream: int = 7, record: bool = False) -> TraceBuilder:
        """The host waits for an event; ``stream`` recorded it."""
        return self._sync("EventSynchronize", "Event Sync", start, dur, stream, record)

    # ----------------------------------------------------------------------------------------------- device

    def launch(
        self,
        kernel: str,
        *,
        call: Span,
        runs: Span,
        stream: int = 7,
        device: int = 0,
        args: dict[str, Any] | None = None,
    ) -> TraceBuilder:
        """A kernel and the call that launched it."""
        self.call(f"{self._vendor}LaunchKernel", *call)
        return self.kernel(kernel, *runs, stream=stream, device=device, correlation=self._correlation, args=args)

    def kernel(
        self,
        name: str,
        start: float,
        dur: float,
        *,
        stream: int = 7,
        device: int = 0,
        correlation: int | None = None,
        args: dict[str, Any] | None = None,
    ) -> TraceBuilder:
        """A kernel whose launch is not in the trace, unless ``correlation`` names it."""
        return self._device("kernel", name, start, dur, stream, device, correlation, args or {})

    def copy(
        self,
        direction: str,
        *,
        call: Span,
        runs: Span,
        memory: str = "pinned",
        bytes: int = 4096,
        stream: int = 7,
        device: int = 0,
        name: str | None = None,
    ) -> TraceBuilder:
        """A copy (``HtoD``, ``DtoH``, ``DtoD`` …) and the call that made it; ``name`` another than ``…MemcpyAsync``."""
        self.call(name or f"{self._vendor}MemcpyAsync", *call)
        return self.memcpy(
            direction, *runs, memory=memory, bytes=bytes, stream=stream, device=device, correlation=self._correlation
        )

    def memcpy(
        self,
        direction: str,
        start: float,
        dur: float,
        *,
        memory: str = "pinned",
        bytes: int = 4096,
        stream: int = 7,
        device: int = 0,
        correlation: int | None = None,
    ) -> TraceBuilder:
        """The device's row of a copy."""
        side = {"H": memory.capitalize(), "D": "Device", "P": "Device"}
        name = f"Memcpy {direction} ({side[direction[0]]} -> {side[direction[-1]]})"
        return self._device("gpu_memcpy", name, start, dur, stream, device, correlation, {"bytes": bytes})

    def memset(self, start: float, dur: float, *, bytes: int = 4, stream: int = 7, device: int = 0) -> TraceBuilder:
        """The device's row of a fill."""
        return self._device("gpu_memset", "Memset (Device)", start, dur, stream, device, None, {"bytes": bytes})

    # ---------------------------------------------------------------------------------------------- windows

    def step(self, start: float, dur: float, *, number: int | None = None) -> TraceBuilder:
        """A ``ProfilerStep#`` row; numbers count up from 0."""
        taken = sum(event["name"].startswith("ProfilerStep#") for event in self.events)
        return self.annotation(f"ProfilerStep#{taken if number is None else number}", start, dur)

    def steps(self, *boundaries: float) -> TraceBuilder:
        """``ProfilerStep#`` rows between n + 1 boundaries."""
        for start, end in itertools.pairwise(boundaries):
            self.step(start, end - start)
        return self

    def recording(
        self,
        *boundaries: float,
        source: str = "user",
        first: int = 0,
        bare_us: Sequence[float] | None = None,
        drained: float | None = None,
        **fields: Any,
    ) -> TraceBuilder:
        """Our collector's own key, with n + 1 step boundaries; ``drained`` is when the device had finished them,
        ``fields`` are those of :class:`Recording`."""
        self._boundaries = list(boundaries)
        done = None if drained is None else epoch_ns(drained)
        steps = {"source": source, "first": first, "tid": self._tid, "drained_ns": done}
        self._steps = msgspec.convert(steps, RecordedSteps)
        bare = None if bare_us is None else Bare(steps_ns=tuple(round(length * 1000) for length in bare_us))
        self._recording = {"version": "0.0", "torch": "2.11.0", "bare": bare, **fields}
        return self

    def warning(self, at: float, *stack: FrameSpec, expected: str | None = None) -> TraceBuilder:
        """PyTorch's warning of a wait, seen at ``at`` with ``stack``, outermost frame first."""
        return self._site("warning", "", at, at, stack, expected)

    def sampled(self, at: Iterable[float], *stack: FrameSpec) -> TraceBuilder:
        """The host was at ``stack``, outermost frame first, when it was sampled at these times."""
        self._samples += [HostSample(at_ns=epoch_ns(one), stack=self._stack(stack)) for one in at]
        return self

    def entry(
        self,
        name: str,
        start: float,
        end: float,
        *stack: FrameSpec,
        expected: str | None = None,
        group: str | None = None,
    ) -> TraceBuilder:
        """A wrapped entry point (``torch.cuda.synchronize``) from ``start`` to ``end``."""
        return self._site("call", name, start, end, stack, expected, group)

    def attribution(self, *stack: FrameSpec, ops: Sequence[str], ordinal: int = 0) -> TraceBuilder:
        """What the attribution window saw at ``stack``."""
        self._attribution = self._attribution or []
        self._attribution.append(Attributed(stack=self._stack(stack), ordinal=ordinal, ops=tuple(ops)))
        return self

    def race(
        self,
        rule: HazardRule,
        access: Sequence[FrameSpec],
        earlier: Sequence[FrameSpec],
        *,
        count: int = 1,
        nbytes: int = 4,
        op: str = "aten::sum",
        expected: str | None = None,
        **sides: dict[str, Any],
    ) -> TraceBuilder:
        """A race that the collector saw; ``sides`` are ``access_is`` and ``earlier_is``: fields of ``HazardAccess``."""
        one = {"stack": self._stack(access), "op": op, "writes": False, **sides.get("access_is", {})}
        other = {"stack": self._stack(earlier), "op": "aten::copy_", "writes": True, **sides.get("earlier_is", {})}
        event = {"rule": rule, "access": one, "earlier": other, "tid": self._tid, "count": count, "bytes": nbytes}
        self._hazards = [*(self._hazards or ()), msgspec.convert({**event, "expected": expected}, HazardEvent)]
        return self

    def phase(self, kind: PhaseKind, *, name: str | None = None, steps: int = 0, **fields: Any) -> TraceBuilder:
        """A phase of the whole run, every step of which was counted; ``fields`` are those of ``RecordedPhase``."""
        known = {"name": name or kind, "kind": kind, "steps": steps, "counted_steps": steps, "time_ns": 1_000_000_000}
        self._phases.append(msgspec.convert({**known, **fields}, RecordedPhase))
        return self

    def counted(self, phase: int, count: int, *stack: FrameSpec, name: str = "", **fields: Any) -> TraceBuilder:
        """Waits at a stack over the whole run, once in each of as many steps; ``name`` is the entry point of a call."""
        known = {"kind": "call" if name else "warning", "name": name, "steps": count}
        known |= {"first_step": 1, "last_step": count}
        wait = {"phase": phase, "stack": self._stack(stack), "count": count, **known, **fields}
        self._counted.append(msgspec.convert(wait, CountedWait))
        return self

    def source(self, file: str, number: int, text: str) -> TraceBuilder:
        """The recording keeps the text of a line."""
        self._sources.setdefault(file, {})[str(number)] = text
        return self

    def compiled(
        self,
        kind: CompileKind | None = None,
        phase: int = 0,
        *stack: FrameSpec,
        reason: str | None = None,
        **fields: Any,
    ) -> TraceBuilder:
        """What ``torch.compile`` did once at a stack in a phase; ``fields`` are those of ``CompileEvent``. Without a
        kind, the recording looked and nothing was compiled."""
        self._compiled = self._compiled or []
        if kind is not None:
            known = {"phase": phase, "kind": kind, "reason": reason, "count": 1}
            place = {"stack": self._stack(stack), "compiled": self._stack(stack[-1:])} if stack else {}
            self._compiled.append(msgspec.convert({**known, **place, **fields}, CompileEvent))
        return self

    def kernel_line(self, name: str, *stack: FrameSpec) -> TraceBuilder:
        """The recording knows that the kernel ``name`` comes from a stack, among others."""
        self._compiled = self._compiled or []
        self._kernels.setdefault(name, []).append(self._stack(stack))
        return self

    def compiling(self, start: float, end: float) -> TraceBuilder:
        """The last ``compiled`` took from ``start`` to ``end`` in the recorded steps."""
        assert self._compiled
        times = {"start_ns": epoch_ns(start), "end_ns": epoch_ns(end)}
        self._compiling.append(CompileSpan(event=len(self._compiled) - 1, tid=self._tid, **times))
        return self

    def run(self, **fields: Any) -> TraceBuilder:
        """The process counted its whole run: ``phase`` and ``counted`` say what. ``fields`` are those of
        ``RecordedRun``."""
        self._run = {"id": "run", "started_ns": BASE_NS, "time_ns": 10_000_000_000, "complete": True, **fields}
        return self

    # ----------------------------------------------------------------------------------------------- output

    def document(self) -> dict[str, Any]:
        """The trace as the object that the file holds."""
        document = {
            **self.top,
            "baseTimeNanoseconds": self.top.get("baseTimeNanoseconds", BASE_NS),
            "traceEvents": list(self.events),
        }
        if (
            self._recording is not None
            or self._sites
            or self._attribution is not None
            or self._hazards is not None
            or self._run
        ):
            document["syncscope"] = msgspec.to_builtins(self.recorded())
        return document

    def recorded(self) -> Recording:
        """The ``syncscope`` key."""
        return Recording(
            format=FORMAT,
            steps=msgspec.structs.replace(self._steps, boundaries_ns=tuple(epoch_ns(b) for b in self._boundaries)),
            frames=tuple(self._frames),
            stacks=tuple(self._stacks),
            sources=self._sources,
            sites=tuple(self._sites),
            samples=tuple(sorted(self._samples, key=lambda one: one.at_ns)),
            attribution=None if self._attribution is None else tuple(self._attribution),
            **{
                "run": self._recorded_run(),
                "compiling": tuple(self._compiling),
                "hazards": None if self._hazards is None else tuple(self._hazards),
                **(self._recording or {"version": "0.0"}),
            },
        )

    def _recorded_run(self) -> RecordedRun | None:
        if self._run is None:
            return None
        compiled = None if self._compiled is None else self._recorded_compiling(self._compiled)
        tables = {"phases": tuple(self._phases), "waits": tuple(self._counted), "compiled": compiled}
        return RecordedRun(**{**tables, **self._run})

    def _recorded_compiling(self, events: list[CompileEvent]) -> RecordedCompiling:
        kernels = (RecordedKernel(name=name, stacks=tuple(stacks)) for name, stacks in self._kernels.items())
        return RecordedCompiling(events=tuple(events), kernels=tuple(kernels))

    def json(self) -> bytes:
        return msgspec.json.encode(self.document())

    def write(self, path: Path) -> Path:
        """The file at ``path``, gzipped when the name ends in ``.gz``."""
        data = self.json()
        path.write_bytes(gzip.compress(data) if path.suffix == ".gz" else data)
        return path

    def trace(self, path: str = "trace.json") -> Trace:
        """The trace, read from :meth:`json` by the real reader under the name ``path``."""
        return read_bytes(self.json(), path)

    # ------------------------------------------------------------------------------------------------ parts

    def _add(self, event: dict[str, Any]) -> TraceBuilder:
        self.events.append(event)
        return self

    def _next(self) -> int:
        self._correlation += 1
        return self._correlation

    def _host(self, category: str, name: str, start: float, dur: float, args: dict[str, Any]) -> TraceBuilder:
        place = {"pid": PID, "tid": self._tid, "ts": start, "dur": dur}
        return self._add({"ph": "X", "cat": category, "name": name, **place, "args": args})

    def _frame(self, name: str, start: float, dur: float) -> TraceBuilder:
        self._python_id += 1
        holders = [number for tid, number, end in self._open_frames if tid == self._tid and end >= start + dur]
        parent = holders[-1] if holders else None
        self._open_frames = [item for item in self._open_frames if item[0] != self._tid or item[2] > start]
        self._open_frames.append((self._tid, self._python_id, start + dur))
        args = {"Python id": self._python_id, "Python parent id": parent}
        return self._host("python_function", name, start, dur, args)

    def _sync(self, call: str, kind: str, start: float, dur: float, stream: int, record: bool) -> TraceBuilder:
        self.call(f"{self._vendor}{call}", start, dur)
        if record:
            args: dict[str, Any] = {"cuda_sync_kind": kind, "correlation": self._correlation, "context": 1}
            if kind == "Event Sync":
                args |= {"wait_on_stream": stream, "wait_on_cuda_event_record_corr_id": -1}
            self._device_row("cuda_sync", kind, start, dur, -1 if kind == "Event Sync" else stream, 0, args)
        return self

    def _device(
        self,
        category: str,
        name: str,
        start: float,
        dur: float,
        stream: int,
        device: int,
        correlation: int | None,
        args: dict[str, Any],
    ) -> TraceBuilder:
        joined = self._next() if correlation is None else correlation
        return self._device_row(category, name, start, dur, stream, device, {"correlation": joined, **args})

    def _device_row(
        self, category: str, name: str, start: float, dur: float, stream: int, device: int, args: dict[str, Any]
    ) -> TraceBuilder:
        place = {"pid": device, "tid": abs(stream), "ts": start, "dur": dur}
        args = {"device": device, "stream": stream, **args}
        return self._add({"ph": "X", "cat": category, "name": name, **place, "args": args})

    def _site(
        self,
        kind: str,
        name: str,
        start: float,
        end: float,
        stack: Sequence[FrameSpec],
        expected: str | None,
        group: str | None = None,
    ) -> TraceBuilder:
        event = {
            "kind": kind,
            "name": name,
            "tid": self._tid,
            "start_ns": epoch_ns(start),
            "end_ns": epoch_ns(end),
            "stack": self._stack(stack),
            "expected": expected,
            "group": group,
        }
        self._sites.append(msgspec.convert(event, SiteEvent))
        return self

    def _stack(self, stack: Sequence[FrameSpec]) -> int:
        indices = tuple(_intern(self._frames, recorded_frame(frame)) for frame in stack)
        return _intern(self._stacks, indices)


def recorded_frame(spec: FrameSpec) -> RecordedFrame:
    """A frame as the collector records it; one is the user's unless its path starts with ``<``."""
    if isinstance(spec, RecordedFrame):
        return spec
    file, line, function, *expression = spec
    return RecordedFrame(
        file=file,
        line=line,
        end_line=line,
        function=function,
        expression=expression[0] if expression else None,
        user=not file.startswith("<"),
    )


def epoch_ns(microseconds: float) -> int:
    """µs since the trace's base as ns since the Unix epoch."""
    return BASE_NS + round(microseconds * 1000)


def _intern(table: list[Any], item: Any) -> int:
    if item not in table:
        table.append(item)
    return table.index(item)
