"""Which op waited, in a step that was recorded with PyTorch's ops alone.

PyTorch keeps a warning until the call that waits returns to Python. So the op has just ended when the warning is seen.
"""

from __future__ import annotations

import bisect
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import msgspec

from syncscope.schema.expressions import DYNAMIC_SHAPES, SCALAR_READS
from syncscope.schema.recording import Attributed, SiteEvent

LATE_NS = 1_000_000
"""A warning that comes longer after an op is not of it."""

MOST = 0.5
"""Of an op's time: an op inside of it that takes more is what waits."""

WAITING = SCALAR_READS | DYNAMIC_SHAPES | {"aten::copy_"}
"""Ops that wait on the device, if one inside of a call does."""


class _Event(msgspec.Struct):
    cat: str = ""
    name: str = ""
    tid: int | str = 0
    ts: float = 0.0
    """µs since the trace's base."""
    dur: float = 0.0


class _Trace(msgspec.Struct):
    events: list[_Event] = msgspec.field(default_factory=list, name="traceEvents")
    base_ns: int = msgspec.field(default=0, name="baseTimeNanoseconds")


@dataclass
class _Op:
    name: str
    start: int
    """ns since the epoch, like ``end``."""
    end: int
    inside: list[_Op] = field(default_factory=list)


def find_ops(exported: bytes, events: Sequence[SiteEvent], aliases: Mapping[str, int]) -> tuple[Attributed, ...]:
    """The ops behind the warnings among ``events``, by stack and ordinal. ``exported`` is a Chrome trace of the same
    time, in which a thread may have its other number (``Threads.aliases``).

    Raises ``msgspec.DecodeError`` where it is none.
    """
    trace = msgspec.json.decode(exported, type=_Trace)
    rows = (event for event in trace.events if event.cat == "cpu_op")
    threads: dict[int, list[_Op]] = {}
    for row in sorted(rows, key=lambda row: (row.ts, -row.dur)):
        start = trace.base_ns + round(row.ts * 1e3)
        tid = aliases.get(str(row.tid), row.tid)
        if isinstance(tid, int):
            _nest(threads.setdefault(tid, []), _Op(row.name, start, start + round(row.dur * 1e3)))
    found: list[Attributed] = []
    seen: Counter[int] = Counter()
    for event in events:
        if event.kind != "warning":
            continue
        chain = _chain_at(threads.get(event.tid, []), event.end_ns)
        if chain:
            found.append(Attributed(stack=event.stack, ordinal=seen[event.stack], ops=chain))
        seen[event.stack] += 1
    return tuple(found)


def _nest(ops: list[_Op], op: _Op) -> None:
    """Add an op that begins after all others, to what is inside of the one around it."""
    while ops and op.start < ops[-1].end:
        ops = ops[-1].inside
    ops.append(op)


def _chain_at(ops: list[_Op], ns: int) -> tuple[str, ...]:
    """The ops around the wait that was told of at ``ns``, outermost first."""
    chain: list[str] = []
    while True:
        last = bisect.bisect_right(ops, ns, key=lambda op: op.start) - 1
        if last < 0:
            return ()  # only ops that have not waited yet
        op = ops[last]
        chain.append(op.name)
        if op.end <= ns:
            return (*chain, *_waiting_inside(op)) if ns - op.end <= LATE_NS else ()
        ops = op.inside


def _waiting_inside(op: _Op) -> Iterable[str]:
    """The ops inside of ``op`` on the way to the one that waits."""
    while op.inside:
        inner = next((one for one in op.inside if one.name in WAITING), None)
        if inner is None:
            inner = max(op.inside, key=lambda one: one.end - one.start)
            if inner.end - inner.start <= MOST * (op.end - op.start):
                return
        yield inner.name
        op = inner
