"""A loop on a device, simulated by hand: the truth that a replay is held against.

The simulation knows nothing of traces. It walks through one step after the other, keeps the time of the host and of
each stream, and writes down what a profiler would have seen. Times are whole microseconds.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from tests.builders import TraceBuilder

CALL, LATENCY, GAP, RETURN, ASKED = 3, 2, 1, 4, 5
"""µs: of a call, from a launch to its start, between activities of a stream, from the end of what was waited for to the
return of a wait, and of a wait with nothing to wait for."""


class Work(NamedTuple):
    """The host works."""

    length: int


class Launch(NamedTuple):
    """A kernel, or with a ``direction`` a copy from or to pinned memory."""

    length: int
    stream: int = 7
    direction: str = ""


class Blocking(NamedTuple):
    """A copy from pageable memory: the call returns when it is done."""

    length: int
    stream: int = 7


class Wait(NamedTuple):
    """The host waits for a stream, or for the whole device. ``name`` tells waits apart."""

    stream: int | None = 7
    name: str = "wait"


Op = Work | Launch | Blocking | Wait


@dataclass
class Simulated:
    """What came of a simulation."""

    host: int = 0
    streams: dict[int, int] = field(default_factory=dict)
    marks: list[int] = field(default_factory=lambda: [0])
    """Ends of the steps on the host."""
    drained: list[int] = field(default_factory=list)
    """When everything launched by the end of each step was done."""
    builder: TraceBuilder = field(default_factory=TraceBuilder)

    @property
    def ends(self) -> list[int]:
        return [max(host, device) for host, device in zip(self.marks[1:], self.drained, strict=True)]


def simulate(steps: Sequence[Sequence[Op]], without: Collection[str] = ()) -> Simulated:
    """Run the steps once; waits with a name in ``without`` are not there."""
    state = Simulated()
    for step in steps:
        for op in step:
            if isinstance(op, Work):
                state.host += op.length
            elif isinstance(op, Wait):
                if op.name not in without:
                    _wait(state, op)
            else:
                _launch(state, op)
        state.marks.append(state.host)
        state.drained.append(max(state.streams.values(), default=0))
    return state


def _launch(state: Simulated, op: Launch | Blocking) -> None:
    begin, blocks = state.host, isinstance(op, Blocking)
    launched = begin if blocks else begin + CALL
    free = state.streams.get(op.stream)
    start = launched + LATENCY if free is None else max(launched + LATENCY, free + GAP)
    end = state.streams[op.stream] = start + op.length
    state.host = max(begin + CALL, end + 1) if blocks else begin + CALL
    call, runs = (begin, state.host - begin), (start, op.length)
    if isinstance(op, Launch) and not op.direction:
        state.builder.launch("gemm", call=call, runs=runs, stream=op.stream)
    else:
        memory, direction = ("pageable", "HtoD") if isinstance(op, Blocking) else ("pinned", op.direction)
        size = 1_000 * op.length
        state.builder.copy(direction, call=call, runs=runs, stream=op.stream, memory=memory, bytes=size)


def _wait(state: Simulated, op: Wait) -> None:
    begin = state.host
    ends = [end for stream, end in state.streams.items() if op.stream in (None, stream)]
    done = max(ends, default=-RETURN)
    state.host = max(begin + ASKED, done + RETURN) if done > begin else begin + ASKED
    if op.stream is None:
        state.builder.device_sync(begin, state.host - begin, record=True)
    else:
        state.builder.stream_sync(begin, state.host - begin, stream=op.stream, record=True)


def trace(steps: Sequence[Sequence[Op]], bare_us: Sequence[float] | None = None) -> TraceBuilder:
    """The trace of the steps as our collector would have recorded it, from an idle device to an idle device."""
    state = simulate(steps)
    return state.builder.recording(*state.marks, bare_us=bare_us, drained=state.ends[-1])
