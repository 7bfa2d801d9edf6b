"""The rows of the timeline's picture, before they are merged: host threads, streams and idle devices as one table."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from syncscope.report.picture.lanes import KINDS
from syncscope.report.picture.spots import Spots
from syncscope.timeline.calls import COMMANDS
from syncscope.timeline.intervals import Bools, Ints, Union
from syncscope.timeline.tables import Marks, Objects
from syncscope.timeline.timeline import Timeline
from syncscope.timeline.waits import is_wait
from syncscope.trace.columns import Columns
from syncscope.trace.sets import different

if TYPE_CHECKING:
    from typing_extensions import Self


class Rows(Columns):
    """Events of the picture: columns of one length."""

    ts: Ints
    end: Ints
    """Nanoseconds since the trace's base."""
    where: Ints
    """``HOST``, ``IDLE`` or ``STREAM``."""
    tid: Ints
    device: Ints
    stream: Ints
    """−1 where they do not apply."""
    kind: Ints
    """Index in ``KINDS``."""
    name: Objects
    bytes: Ints
    """−1 none."""
    memory: Objects
    """``pageable``, ``pinned`` or ``""``."""
    spot: Ints
    """Index in ``Spots.all``, −1 for what is no wait and no copy."""
    link: Ints
    """Row of the picture that it launched or waited for (for idle time the wait that caused it), −1 none."""

    def __len__(self) -> int:
        return len(self.ts)

    def take(self, rows: Ints | Bools) -> Self:
        """Some rows: by number, in that order, or those for which a mask is true."""
        return type(self)(**{name: getattr(self, name)[rows] for name in self.columns})


HOST, IDLE, STREAM = range(3)
"""Where a row is drawn: on a host thread, in the strip of a device's idle time, on a stream."""

KIND = {kind: number for number, kind in enumerate(KINDS)}

MARKER = "ProfilerStep#"
SLACK = 20_000
"""Nanoseconds by which device work may seem to end after the wait for it."""


def picture_rows(timeline: Timeline, spots: Spots) -> Rows:
    """Everything a picture can show: calls, device rows, outermost ops and annotations, bubbles, and what is exposed,
    in this order."""
    device, ops, annotations = _device_rows(timeline, spots), timeline.ops, timeline.annotations
    ops = ops.take(_outermost(ops.nesting.parent, _is_marker(ops)))
    annotations = annotations.take(~_is_marker(annotations))
    annotations = annotations.take(_widest(annotations))
    hosts = _host_rows(ops, "op"), _host_rows(annotations, "annotation")
    # The links of calls and bubbles rely on calls being first and device rows second.
    return _concatenated([_call_rows(timeline, spots), device, *hosts, _bubble_rows(timeline), *_exposed_rows(device)])


def _rows(ts: Ints, end: Ints, where: int, kind: Ints | str, **columns: Any) -> Rows:
    """Rows with what is given; every other column says that it does not apply."""
    n = len(ts)
    kind = np.full(n, KIND[kind], np.int64) if isinstance(kind, str) else kind
    nothing = {name: np.full(n, -1, np.int64) for name in ("tid", "device", "stream", "bytes", "spot", "link")}
    texts = {name: np.full(n, "", object) for name in ("name", "memory")}
    return Rows(ts=ts, end=end, where=np.full(n, where, np.int64), kind=kind, **{**nothing, **texts, **columns})


def _concatenated(parts: Sequence[Rows]) -> Rows:
    return Rows(**{name: np.concatenate([getattr(part, name) for part in parts]) for name in Rows.columns})


def _host_rows(marks: Marks, kind: str) -> Rows:
    return _rows(marks.ts, marks.end, HOST, kind, tid=marks.tid, name=marks.name)


def _call_rows(timeline: Timeline, spots: Spots) -> Rows:
    """The runtime calls. The device rows follow them in the picture, so a link to a device row is its row plus the
    number of calls."""
    calls, waits, copies = timeline.calls, timeline.waits, timeline.copies
    kind = np.where(calls.do(COMMANDS), KIND["launch"], KIND["call"])
    spot, size = np.full(len(calls), -1, np.int64), np.full(len(calls), -1, np.int64)
    memory = np.full(len(calls), "", object)
    launched = np.flatnonzero(copies.launch >= 0)
    at = copies.launch[launched]
    size[at], memory[at], spot[at] = copies.bytes[launched], copies.memory[launched], spots.of_copies(launched)
    # A copy from or to pageable memory blocks inside its call: that is a wait too.
    blocking = launched[copies.memory[launched] == "pageable"]
    kind[copies.launch[blocking]] = KIND["wait"]
    spot[copies.launch[blocking]] = spots.of_copies(blocking, waits_first=True)
    spot[waits.call] = spots.of_waits()
    kind[waits.call[is_wait(waits.kind)]] = KIND["wait"]
    target = np.full(len(calls), -1, dtype=np.int64)
    launching = np.flatnonzero(timeline.activities.launch >= 0)[::-1]
    target[timeline.activities.launch[launching]] = launching
    target[waits.call] = find_awaited(timeline)
    link = np.where(target >= 0, target + len(calls), -1)
    return _rows(
        calls.ts, calls.end, HOST, kind,
        tid=calls.tid, name=calls.name, bytes=size, memory=memory, spot=spot, link=link,
    )  # fmt: skip


def _device_rows(timeline: Timeline, spots: Spots) -> Rows:
    device, copies = timeline.activities, timeline.copies
    kind = np.where(device.kind == "memset", KIND["memset"], KIND["compute"])
    kind[device.collective != ""] = KIND["collective"]
    kind[copies.device_row] = [KIND.get(direction, KIND["copy"]) for direction in copies.direction]
    spot = np.full(len(device), -1, np.int64)
    spot[copies.device_row] = spots.of_copies(copies.row)
    return _rows(
        device.ts, device.end, STREAM, kind, device=device.device, stream=device.stream,
        name=device.name, bytes=device.bytes, memory=device.memory, spot=spot,
    )  # fmt: skip


def find_awaited(timeline: Timeline) -> Ints:
    """For each wait the row of ``Trace.device`` it waited for, −1 none: its copy, else the last to end during the
    wait of what was launched before it."""
    waits, device = timeline.waits, timeline.activities
    awaited: Ints = np.append(timeline.copies.device_row, -1)[waits.copy]
    # What was launched before the trace began, or by a call it does not hold, counts as launched before the wait.
    launched = np.append(timeline.calls.ts, 0)[device.launch]
    launched = np.where(device.launch >= 0, launched, device.end.min(initial=0))
    order = np.argsort(device.end, kind="stable")
    alone = np.flatnonzero((awaited < 0) & is_wait(waits.kind))
    last = np.searchsorted(device.end[order], waits.end[alone] + SLACK, side="right")
    for wait, begin, ended in zip(alone, waits.begin[alone], last, strict=True):
        for row in order[:ended][::-1]:
            if device.end[row] < begin or launched[row] < begin:
                awaited[wait] = row if device.end[row] >= begin else -1
                break
    return awaited


def _outermost(parent: Ints, marker: Bools) -> Bools:
    """Rows with nothing around them but the profiler's step markers."""
    inside = np.append(~marker, False)[parent]
    outermost: Bools = ~marker & ~inside
    return outermost


def _is_marker(marks: Marks) -> Bools:
    """Which rows (n,) are the profiler's step markers."""
    return marks.named(lambda name: name.startswith(MARKER))


def _widest(marks: Marks) -> Bools:
    """Which rows (n,) no other row of their thread holds."""
    widest = np.ones(len(marks), dtype=bool)
    for tid in different(marks.tid):
        own = np.flatnonzero(marks.tid == tid)
        reach = np.maximum.accumulate(marks.end[own])
        widest[own[1:]] = marks.end[own[1:]] > reach[:-1]
    return widest


def _bubble_rows(timeline: Timeline) -> Rows:
    """When the device is idle. Calls are the first rows of the picture, so a call's number is its row's."""
    bubbles = timeline.bubbles
    call = np.append(timeline.waits.call, -1)[bubbles.emptied_by]
    device = np.full(len(bubbles), -1 if timeline.device is None else timeline.device, np.int64)
    return _rows(bubbles.ts, bubbles.end, IDLE, "idle", device=device, name=bubbles.cause, link=call)


def _exposed_rows(device: Rows) -> list[Rows]:
    """The parts of copies and collectives with no compute beside them; as in ``Overlap``, copies inside the device do
    not count."""
    moving = np.isin(device.kind, [KIND[kind] for kind in ("HtoD", "DtoH", "copy", "collective")])
    parts = []
    for number, stream in sorted(set(zip(device.device[moving].tolist(), device.stream[moving].tolist(), strict=True))):
        here = device.device == number
        compute = _union(device, here & (device.kind == KIND["compute"]))
        ts, end = _union(device, here & moving & (device.stream == stream)).without(compute)
        lane = {"device": np.full(len(ts), number, np.int64), "stream": np.full(len(ts), stream, np.int64)}
        parts.append(_rows(ts, end, STREAM, "exposed", **lane, name=np.full(len(ts), "exposed", object)))
    return parts


def _union(rows: Rows, wanted: Bools) -> Union:
    return Union(rows.ts[wanted], rows.end[wanted])
