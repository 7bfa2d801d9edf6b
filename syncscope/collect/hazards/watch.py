"""The detector: what each operator reads and writes, held against what the streams may still be doing."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from types import FrameType
from typing import Any

from syncscope.collect.hazards.blocks import Blocks, is_dense, span_of
from syncscope.collect.hazards.clocks import Clocks
from syncscope.collect.hazards.effects import Effects, effects, tensors
from syncscope.collect.hazards.machine import Machine
from syncscope.collect.hazards.races import Call, Direction, Races
from syncscope.collect.hazards.shadow import Access, Shadow
from syncscope.collect.hazards.spans import Span
from syncscope.collect.paths import OURS


@dataclass(slots=True)
class Running:
    """An operator between its begin and its end."""

    effects: Effects
    call: Call | None = None
    """Named as soon as it touches something that is followed."""
    stream: int | None = None
    tick: int = 0
    touched: dict[int, None] = field(default_factory=dict)
    """Blocks of its arguments."""
    accesses: list[tuple[int, Span, bool]] = field(default_factory=list)
    """Of its stream, to be remembered: block, bytes, whether it writes."""
    later: list[Any] = field(default_factory=list)
    """Tensors that the host itself writes at the end, when a blocking copy has arrived."""


class Watch:
    """Follows one thread's operators, and those of the autograd threads that work for it.

    ``before`` and ``after`` surround each operator. A blocking copy's wait, reported to ``clocks`` in between, comes
    after its accesses got their tick: so they are over when it returns.
    """

    def __init__(
        self,
        tensor: type,
        machine: Machine,
        clocks: Clocks,
        take: Callable[[FrameType], int],
        tid: Callable[[], int],
    ) -> None:
        self.races = Races()
        self.clocks = clocks
        self._tensor = tensor
        self._machine = machine
        self._take = take
        self._tid = tid
        self._shadow: Shadow[Call] = Shadow(clocks)
        self._blocks = Blocks(self._shadow.drop)
        self._effects: dict[Any, Effects] = {}
        self.thread = threading.get_ident()
        """The one whose operators are shown."""

    # ------------------------------------------------------------------------------------------------ operators

    def before(self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Running | None:
        """An operator is about to run."""
        found = self._effects.get(func)
        if found is None:
            found = self._effects[func] = effects(func._schema)
        if found.none:
            return None
        running = Running(found)
        if found.kind == "copy":
            self._copy(running, args, kwargs)
        elif found.kind == "conversion":
            self._conversion(running, args[0], kwargs)
        else:
            for position, name, touch in found.arguments:
                value = args[position] if position < len(args) else kwargs.get(name)
                for tensor in tensors(value, self._tensor):
                    self._touch(running, tensor, touch == "write")
        return running

    def after(self, running: Running, result: Any) -> None:
        """It has run."""
        for tensor in running.later:
            self._host(running, tensor, writes=True)
        if running.effects.fills:
            for tensor in tensors(result, self._tensor):
                self._filled(running, tensor)
        if running.stream is None or not running.accesses:
            return
        tick, call = self._last_tick(running, running.stream), self._name(running)
        for block, span, writes in running.accesses:
            self._shadow.add(block, Access(running.stream, tick, span, writes, call))

    def reading(self, name: str, tensor: Any) -> Running:
        """A function that is no operator is about to read a tensor; ``after`` ends it."""
        running = Running(Effects(name, (), fills=False))
        self._touch(running, tensor, writes=False)
        return running

    # --------------------------------------------------------------------------------------------------- copies

    def _copy(self, running: Running, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        """``copy_`` and ``_foreach_copy_``: (into, from, non_blocking)."""
        non_blocking = bool(args[2] if len(args) > 2 else kwargs.get("non_blocking", False))
        into = args[0] if args else kwargs["self"]
        source = args[1] if len(args) > 1 else kwargs["src"]
        for to, of in zip(tensors(into, self._tensor), tensors(source, self._tensor), strict=False):
            sides = self._machine.of(to), self._machine.of(of)
            if sides == ("device", "host"):
                self._touch(running, to, writes=True)
                self._from_host(running, of, to.device, _direct(of, to, non_blocking))
            elif sides == ("host", "device"):
                self._touch(running, of, writes=False)
                self._to_host(running, to, of.device, _direct(to, of, non_blocking))
            else:
                self._touch(running, of, writes=False)
                self._touch(running, to, writes=True)

    def _conversion(self, running: Running, source: Any, kwargs: dict[str, Any]) -> None:
        """``_to_copy``: a new tensor. Into host memory it is looked at when it is there."""
        target = kwargs.get("device")
        side, to = self._machine.of(source), None if target is None else self._machine.side(target)
        if side == "host" and to == "device":
            self._launched(running, target)
            same_type = kwargs.get("dtype") in (None, source.dtype)
            direct = same_type and is_dense(source) and kwargs.get("memory_format") is None
            non_blocking = bool(kwargs.get("non_blocking"))
            self._from_host(running, source, target, direct or (non_blocking and source.is_contiguous()))
        else:
            self._touch(running, source, writes=False)
            if side == "device" and to == "host":
                self._name(running).direction = "DtoH"

    def _from_host(self, running: Running, source: Any, device: Any, direct: bool) -> None:
        """The device reads pinned memory itself. Else the host first brings the bytes elsewhere."""
        if direct and self._machine.pinned(source):
            self._stream(running, source, device, writes=False, direction="HtoD")
        else:
            self._host(running, source, writes=False)
            self._name(running).direction = "HtoD"

    def _to_host(self, running: Running, into: Any, device: Any, direct: bool) -> None:
        """The device writes pinned memory itself. Else the host brings the bytes there, once they have come."""
        if direct and self._machine.pinned(into):
            self._stream(running, into, device, writes=True, direction="DtoH")
        else:
            running.later.append(into)
            self._name(running).direction = "DtoH"

    # ------------------------------------------------------------------------------------------------- accesses

    def _touch(self, running: Running, tensor: Any, writes: bool) -> None:
        side = self._machine.of(tensor)
        if side == "host":
            self._host(running, tensor, writes)
        elif side == "device":
            self._stream(running, tensor, tensor.device, writes)

    def _host(self, running: Running, tensor: Any, writes: bool) -> None:
        """The host touches memory now: only what streams do to it matters."""
        block = self._blocks.find(tensor)
        if block is None or block not in self._shadow or (span := span_of(tensor)) is None:
            return
        for earlier in self._shadow.races_with_host(block, span, writes):
            self.races.by_host(self._name(running), span, writes, earlier)

    def _stream(
        self, running: Running, tensor: Any, device: Any, writes: bool, direction: Direction | None = None
    ) -> None:
        """The operator's stream touches memory."""
        if not self._launched(running, device):
            return
        block, span = self._blocks.track(tensor), span_of(tensor)
        if block is None or span is None:
            return
        call = self._name(running)
        call.direction = direction or call.direction
        assert running.stream is not None
        for earlier in self._shadow.races(block, running.stream, span, writes):
            self.races.by_stream(call, running.stream, span, writes, earlier)
        running.touched[block] = None
        running.accesses.append((block, span, writes))

    def _filled(self, running: Running, tensor: Any) -> None:
        """A new tensor came out. On the device it was written by the stream; so was pinned memory by a copy."""
        side = self._machine.of(tensor)
        arrives = side == "host" and running.call is not None and running.call.direction == "DtoH"
        if side != "device" and not (arrives and self._machine.pinned(tensor)):
            return
        if not self._launched(running, tensor.device):
            return
        block, span = self._blocks.track(tensor), span_of(tensor)
        if block is not None and span is not None and block not in running.touched:  # else a view, undeclared
            self._name(running)
            running.accesses.append((block, span, True))

    def _launched(self, running: Running, device: Any) -> bool:
        """Give the operator a tick of the stream it runs on; ``False`` when it does not run at all."""
        if running.stream is None:
            stream = self._machine.stream(device)
            if stream is None:
                return False
            running.stream, running.tick = stream, self.clocks.launch(stream)
        return True

    def _last_tick(self, running: Running, stream: int) -> int:
        """The tick of all it does. An operator that waited for its own first half (``nonzero``) goes on to write; one
        that leaves nothing on the device (``item``), or a copy between host and device, ended with its wait."""
        waited = self.clocks.over(stream, running.tick)
        leaves = any(writes for _, _, writes in running.accesses)
        if waited and leaves and self._name(running).direction is None:
            return self.clocks.launch(stream)
        return running.tick

    # -------------------------------------------------------------------------------------------------- the line

    def _name(self, running: Running) -> Call:
        if running.call is None:
            running.call = Call(running.effects.name, self._take(self._frame()), self._tid())
        return running.call

    def _frame(self) -> FrameType:
        """The innermost frame of the program. An autograd thread without one works for the line of ``backward``."""
        here = sys._getframe(1)
        return _outside(here) or _outside(sys._current_frames().get(self.thread)) or here


def _direct(host: Any, device: Any, non_blocking: bool) -> bool:
    """Whether a copy between the two touches the host's tensor itself, not a temporary made of it by the host.

    The same layout and type on both sides need none. A ``non_blocking`` copy converts on the device, but what is
    smaller on the host is expanded there.
    """
    alike = host.dtype == device.dtype and host.shape == device.shape and host.stride() == device.stride()
    whole = host.is_contiguous() and host.numel() >= device.numel()
    return (alike and is_dense(host)) or (non_blocking and whole)


def _outside(frame: FrameType | None) -> FrameType | None:
    """The innermost frame at or around this one that is the program's: not ours, nor torch's way to us."""
    while frame is not None and frame.f_code.co_filename.startswith(OURS):
        frame = frame.f_back
    if frame is not None and frame.f_code.co_name == "handle_torch_function" and frame.f_back is not None:
        return frame.f_back.f_back  # called by the function that asks who overrides it
    return frame
