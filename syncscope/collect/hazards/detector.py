"""The race detector: what each operator reads and writes, held against what streams may still be doing."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from types import FrameType
from typing import Any

from syncscope.collect.hazards.backward import BackwardOrder
from syncscope.collect.hazards.effects import Effects, find_tensors, read_effects
from syncscope.collect.hazards.memory import Span, Storages, is_dense, span_of
from syncscope.collect.hazards.races import Call, Direction, Races
from syncscope.collect.hazards.runtime import Runtime
from syncscope.collect.hazards.shadow import Access, ShadowMemory
from syncscope.collect.hazards.vector_clocks import Clocks
from syncscope.collect.paths import OURS
from syncscope.collect.sites.threads import current_frames


@dataclass(slots=True)
class OperatorRun:
    """An operator between its begin and its end."""

    effects: Effects
    call: Call | None = None
    """Set as soon as the operator touches memory that is followed."""
    stream: int | None = None
    """The stream it works on, ``None`` if it launches nothing on a device."""
    tick: int = 0
    touched: dict[int, None] = field(default_factory=dict)
    """Storages of its arguments."""
    accesses: list[tuple[int, Span, bool]] = field(default_factory=list)
    """Accesses of its stream, to be remembered: storage, bytes, whether it writes."""
    host_writes: list[Any] = field(default_factory=list)
    """Tensors that the host itself writes at the end, when a blocking copy has arrived."""
    target_streams: list[int] = field(default_factory=list)
    """Streams of other devices that wait for it."""


class RaceDetector:
    """Follows the operators of one thread, and those of the autograd threads that work for it.

    ``begin`` and ``end`` surround each operator. The wait inside a blocking copy is reported to ``clocks`` in between:
    the copy's accesses have their tick by then, so they are over when it returns.
    """

    def __init__(
        self,
        tensor: type,
        runtime: Runtime,
        clocks: Clocks,
        backward: BackwardOrder,
        take: Callable[[FrameType], int],
        tid: Callable[[], int],
    ) -> None:
        self.races = Races()
        self._tensor = tensor
        self._runtime = runtime
        self._clocks = clocks
        self._backward = backward
        self._take = take
        self._tid = tid
        self._shadow: ShadowMemory[Call] = ShadowMemory(clocks)
        self._storages = Storages(self._shadow.drop)
        self._effects: dict[Any, Effects] = {}
        self.thread = threading.get_ident()
        """The thread whose operators are followed."""

    # ------------------------------------------------------------------------------------------------ operators

    def begin(self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> OperatorRun | None:
        """An operator is about to run."""
        effects = self._effects.get(func)
        if effects is None:
            effects = self._effects[func] = read_effects(func._schema)
        if effects.none:
            return None
        running = OperatorRun(effects)
        if effects.kind == "join":
            self._clocks.wait_for_all(*self._runtime.current_streams())
        if effects.kind == "copy":
            self._copy(running, args, kwargs)
        elif effects.kind == "conversion":
            self._conversion(running, args[0], kwargs)
        else:
            for position, name, touch in effects.arguments:
                value = args[position] if position < len(args) else kwargs.get(name)
                for tensor in find_tensors(value, self._tensor):
                    self._touch(running, tensor, touch == "write")
        return running

    def may_wait(self, running: OperatorRun, kwargs: dict[str, Any]) -> bool:
        """Whether an operator may wait for a stream: it works on a device, or creates a tensor there."""
        device = kwargs.get("device")
        creates = device is not None and self._runtime.side_of_device(device) == "device"
        return creates or running.stream is not None

    def end(self, running: OperatorRun, result: Any) -> None:
        """The operator has run and returned ``result``."""
        for tensor in running.host_writes:
            self._host(running, tensor, writes=True)
        if running.effects.fills:
            for tensor in find_tensors(result, self._tensor):
                self._filled(running, tensor)
        if running.stream is None:
            return
        for target in running.target_streams:
            self._clocks.wait_for_stream(target, running.stream)
        if not running.accesses:
            return
        tick, call = self._last_tick(running, running.stream), self._call(running)
        for storage, span, writes in running.accesses:
            self._shadow.add(storage, Access(running.stream, tick, span, writes, call))

    def reading(self, name: str, tensor: Any) -> OperatorRun:
        """A function that is no operator is about to read a tensor; ``end`` ends it."""
        running = OperatorRun(Effects(name, (), fills=False))
        self._touch(running, tensor, writes=False)
        return running

    # --------------------------------------------------------------------------------------------------- copies

    def _copy(self, running: OperatorRun, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        """``copy_`` and ``_foreach_copy_``: (into, from, non_blocking)."""
        non_blocking = bool(args[2] if len(args) > 2 else kwargs.get("non_blocking", False))
        into = args[0] if args else kwargs["self"]
        source = args[1] if len(args) > 1 else kwargs["src"]
        for to, of in zip(find_tensors(into, self._tensor), find_tensors(source, self._tensor), strict=False):
            sides = self._runtime.side(to), self._runtime.side(of)
            if sides == ("device", "host"):
                self._touch(running, to, writes=True)
                self._from_host(running, of, to.device, _direct(of, to, non_blocking))
            elif sides == ("host", "device"):
                self._touch(running, of, writes=False)
                self._to_host(running, to, of.device, _direct(to, of, non_blocking))
            else:
                if sides == ("device", "device"):
                    self._between_devices(running, of.device, to.device)
                self._touch(running, of, writes=False)
                self._touch(running, to, writes=True)

    def _conversion(self, running: OperatorRun, source: Any, kwargs: dict[str, Any]) -> None:
        """``_to_copy``: a new tensor. A copy to the host is looked at in ``end``, when the tensor exists."""
        target = kwargs.get("device")
        side, to = self._runtime.side(source), None if target is None else self._runtime.side_of_device(target)
        if side == "host" and to == "device":
            self._launched(running, target)
            same_type = kwargs.get("dtype") in (None, source.dtype)
            direct = same_type and is_dense(source) and kwargs.get("memory_format") is None
            non_blocking = bool(kwargs.get("non_blocking"))
            self._from_host(running, source, target, direct or (non_blocking and source.is_contiguous()))
        else:
            if side == to == "device":
                self._between_devices(running, source.device, target)
            self._touch(running, source, writes=False)
            if side == "device" and to == "host":
                self._call(running).direction = "DtoH"

    def _between_devices(self, running: OperatorRun, source: Any, target: Any) -> None:
        """PyTorch copies on the current stream of the source's device, after what is on that of the target's device,
        and lets the latter wait for the copy."""
        if source == target or not self._launched(running, source):
            return
        stream = self._runtime.launch_stream(target)
        if stream is not None and running.stream is not None:
            self._clocks.wait_for_stream(running.stream, stream)
            running.target_streams.append(stream)

    def _from_host(self, running: OperatorRun, source: Any, device: Any, direct: bool) -> None:
        """The device reads pinned memory itself. Other memory is read by the host first."""
        if direct and self._runtime.pinned(source):
            self._stream(running, source, device, writes=False, direction="HtoD")
        else:
            self._host(running, source, writes=False)
            self._call(running).direction = "HtoD"

    def _to_host(self, running: OperatorRun, into: Any, device: Any, direct: bool) -> None:
        """The device writes pinned memory itself. Other memory is written by the host once the bytes have arrived."""
        if direct and self._runtime.pinned(into):
            self._stream(running, into, device, writes=True, direction="DtoH")
        else:
            running.host_writes.append(into)
            self._call(running).direction = "DtoH"

    # ------------------------------------------------------------------------------------------------- accesses

    def _touch(self, running: OperatorRun, tensor: Any, writes: bool) -> None:
        side = self._runtime.side(tensor)
        if side == "host":
            self._host(running, tensor, writes)
        elif side == "device":
            self._stream(running, tensor, tensor.device, writes)

    def _host(self, running: OperatorRun, tensor: Any, writes: bool) -> None:
        """The host touches memory now. Only streams can race with it."""
        storage = self._storages.find(tensor)
        if storage is None or storage not in self._shadow or (span := span_of(tensor)) is None:
            return
        for earlier in self._shadow.races_with_host(storage, span, writes):
            self.races.by_host(self._call(running), span, writes, earlier)

    def _stream(
        self, running: OperatorRun, tensor: Any, device: Any, writes: bool, direction: Direction | None = None
    ) -> None:
        """The operator's stream touches memory."""
        if not self._launched(running, device):
            return
        storage, span = self._storages.track(tensor), span_of(tensor)
        if storage is None or span is None:
            return
        call = self._call(running)
        call.direction = direction or call.direction
        assert running.stream is not None
        for earlier in self._shadow.races(storage, running.stream, span, writes):
            self.races.by_stream(call, running.stream, span, writes, earlier)
        running.touched[storage] = None
        running.accesses.append((storage, span, writes))

    def _filled(self, running: OperatorRun, tensor: Any) -> None:
        """The operator returned a new tensor. The stream wrote it if it is on the device, and so did a copy into pinned
        memory."""
        side = self._runtime.side(tensor)
        arrives = side == "host" and running.call is not None and running.call.direction == "DtoH"
        if side != "device" and not (arrives and self._runtime.pinned(tensor)):
            return
        if not self._launched(running, tensor.device):
            return
        storage, span = self._storages.track(tensor), span_of(tensor)
        if storage is not None and span is not None and storage not in running.touched:  # else a view, undeclared
            self._call(running)
            running.accesses.append((storage, span, True))

    def _launched(self, running: OperatorRun, device: Any) -> bool:
        """Give the operator a tick of the stream it runs on; ``False`` when a graph captures it instead."""
        if running.stream is None:
            stream = self._runtime.launch_stream(device)
            if stream is None:
                return False
            self._backward.launch(stream)
            running.stream, running.tick = stream, self._clocks.launch(stream)
        return True

    def _last_tick(self, running: OperatorRun, stream: int) -> int:
        """The tick at which all its work is over. An operator that waited inside and leaves results on the device
        (``nonzero``) went on to write them. One that leaves none (``item``) and a copy between host and device ended
        with the wait."""
        waited = self._clocks.over(stream, running.tick)
        leaves = any(writes for _, _, writes in running.accesses)
        if waited and leaves and self._call(running).direction is None:
            return self._clocks.launch(stream)
        return running.tick

    # -------------------------------------------------------------------------------------------------- the line

    def _call(self, running: OperatorRun) -> Call:
        if running.call is None:
            running.call = Call(running.effects.name, self._take(self._frame()), self._tid())
        return running.call

    def _frame(self) -> FrameType:
        """The innermost frame of the program; for an autograd thread without one, that of the call of ``backward``."""
        here = sys._getframe(1)
        return _program_frame(here) or _program_frame(current_frames().get(self.thread)) or here


def _direct(host: Any, device: Any, non_blocking: bool) -> bool:
    """Whether a copy between the two touches the host's tensor itself, not a temporary made of it by the host.

    It does when layout and type are the same on both sides. A ``non_blocking`` copy converts types on the device, but
    a tensor that is smaller on the host is expanded there.
    """
    alike = host.dtype == device.dtype and host.shape == device.shape and host.stride() == device.stride()
    whole = host.is_contiguous() and host.numel() >= device.numel()
    return (alike and is_dense(host)) or (non_blocking and whole)


def _program_frame(frame: FrameType | None) -> FrameType | None:
    """The innermost frame of the program at or around this one, without those by which torch calls us."""
    while frame is not None and frame.f_code.co_filename.startswith(OURS):
        frame = frame.f_back
    if frame is not None and frame.f_code.co_name == "handle_torch_function" and frame.f_back is not None:
        return frame.f_back.f_back  # that of the function which asked for overrides
    return frame
