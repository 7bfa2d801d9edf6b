"""Copies between host and device: the call that launched each, round trips, and how copies share the copy engines."""

from __future__ import annotations

import numpy as np

from syncscope.timeline.copy_ops import CopyOps
from syncscope.timeline.intervals import Bools, Ints, Union, are_among
from syncscope.timeline.overlap import exposed_ns, is_compute
from syncscope.timeline.places import Place
from syncscope.timeline.tables import Activities, Calls, Copies, Objects, Ops, Waits, objects
from syncscope.trace.model import Device
from syncscope.trace.names import HIP_COPY_KINDS
from syncscope.trace.sets import different

HOST_COPIES = ("HtoD", "DtoH")
"""Directions of copies between host and device."""

COMPUTE_SHARE = 0.1
"""A stream that has this share of its device's kernel time is one that computes. A copy stream that casts is not."""

LEAST_BYTES = 1024
"""Below this many bytes (single values, small indices) two copies of the same size are a coincidence."""

HAND_OVER = 20_000
"""The most nanoseconds between the end of a copy and the begin of the next that waited for it. An H200 takes 4 to 10
µs."""


def find_copies(activities: Activities, calls: Calls, ops: Ops, copy_ops: CopyOps, compute: dict[int, Union]) -> Copies:
    """The copies that devices made; step, wait and place are unknown yet.

    ``compute`` is when each device computes (``overlap.compute_unions``).
    """
    made = activities.take(activities.kind == "memcpy")
    launch_ts, launch_end, tid = (np.append(column, -1)[made.launch] for column in (calls.ts, calls.end, calls.tid))
    op = np.full(len(made), -1, dtype=np.int64)
    op[made.launch >= 0] = copy_ops.of(made.launch[made.launch >= 0])
    unknown = np.full(len(made), -1, dtype=np.int64)
    return Copies(
        row=np.arange(len(made), dtype=np.int64), ts=made.ts, end=made.end, device_row=made.row, launch=made.launch,
        launch_ts=launch_ts, launch_end=launch_end, tid=tid, step=unknown, bytes=made.bytes,
        direction=_directions(made, calls), memory=made.memory, device=made.device, stream=made.stream,
        op=op, ops=ops.chains(op), wait=unknown, exposed=exposed_ns(made.ts, made.end, made.device, compute),
        with_compute=on_compute_stream(made, activities), place=np.zeros(len(made), dtype=np.int64),
    )  # fmt: skip


def _directions(copies: Activities, calls: Calls) -> Objects:
    # ROCm labels some copies wrongly on the device row; the launching call knows.
    kinds = np.append(calls.copy_kind, -1)[copies.launch].tolist()
    return objects([HIP_COPY_KINDS.get(kind, name) for kind, name in zip(kinds, copies.direction, strict=True)])


def on_compute_stream(table: Activities, activities: Activities) -> Bools:
    """Which rows of ``table`` (n,) are on a stream that computes."""
    compute, dur = is_compute(activities), activities.dur
    on_stream = np.zeros(len(table), dtype=bool)
    for device in different(table.device):
        here = compute & (activities.device == device)
        streams, of_row = np.unique(activities.stream[here], return_inverse=True)
        time = np.zeros(len(streams), dtype=np.int64)
        np.add.at(time, of_row, dur[here])
        computing = streams[time / max(int(time.sum()), 1) >= COMPUTE_SHARE]
        on_stream |= (table.device == device) & np.isin(table.stream, computing)
    return on_stream


def blocks_alone(copies: Copies) -> Bools:
    """Which copies (n,) from or to pageable memory block inside their own call, with no wait after it."""
    alone: Bools = (copies.memory == "pageable") & (copies.launch >= 0) & (copies.wait < 0)
    return alone


def find_trips(copies: Copies, waits: Waits, places: tuple[Place, ...]) -> list[tuple[int, int]]:
    """Find round trips, data that leaves the device and comes back: for each the rows of the copy to the host and of
    the copy back. ``waits`` are all waits.

    A trip is a blocking copy to the host's ordinary memory and one from there of as many bytes, launched by the same
    thread in the same step when the first was over, from a place that does not lie before it. Where several have left,
    the last one comes back first.
    """
    place_of = dict(zip(copies.row.tolist(), copies.place.tolist(), strict=True))
    sized = (copies.bytes >= LEAST_BYTES) & (copies.launch >= 0) & (copies.step >= 0)
    copies = copies.take(np.flatnonzero(sized & (copies.memory == "pageable")))
    over = np.maximum(np.append(waits.end, -1)[copies.wait], copies.launch_end)
    order = np.argsort(np.where(copies.direction == "DtoH", over, copies.launch_ts), kind="stable")
    copies = copies.take(order)
    trips: list[tuple[int, int]] = []
    on_host: dict[tuple[int, int, int], list[int]] = {}
    columns = (column.tolist() for column in (copies.row, copies.tid, copies.step, copies.bytes, copies.direction))
    for row, tid, step, size, direction in zip(*columns, strict=True):
        left = on_host.setdefault((tid, step, size), [])
        if direction == "DtoH":
            left.append(row)
        elif direction == "HtoD" and left:
            first = left.pop()
            if _follows(places[place_of[first]], places[place_of[row]]):
                trips.append((first, row))
    return trips


def _follows(there: Place, back: Place) -> bool:
    """Whether the second place comes after the first in the program: where their stacks part, its line is not before
    that of the first. Otherwise it belongs to the next round of a loop, which begins with new data."""
    if there.source != "hook" or back.source != "hook":
        return False
    for one, other in zip(there.chain, back.chain, strict=False):
        if one != other:
            same = (one.file, one.function) == (other.file, other.function)
            return not same or (other.line or 0) > (one.line or 0)
    return True


def count_engines(devices: tuple[Device, ...], copies: Copies, device: int | None) -> int | None:
    """How many copies ``device`` can make at once: what the trace says, or 2 where copies of both directions run at one
    moment, else ``None``."""
    known = {one.id: one.copy_engines for one in devices}.get(-1 if device is None else device)
    if known is not None:
        return known
    here = copies.device == device
    ins, outs = (copies.take(np.flatnonzero(here & (copies.direction == name))) for name in HOST_COPIES)
    # Something out runs beside something in when more of it had begun by the other's end than was over by its begin.
    begun = np.searchsorted(np.sort(outs.ts), ins.end, side="left")
    over = np.searchsorted(np.sort(outs.end), ins.ts, side="right")
    return 2 if (begun > over).any() else None


def find_serialised(copies: Copies, activities: Activities) -> tuple[Ints, Ints]:
    """Find asynchronous copies of pinned memory that waited for a copy in the other direction, right before them on a
    stream that does not compute.

    Returns their positions in ``copies`` (m,), and the exposed ns (m,) of the shorter of the two copies.
    """
    order = np.lexsort((copies.ts, copies.stream, copies.device))
    table = copies.take(order)
    free = np.isin(table.direction, HOST_COPIES) & (table.memory == "pinned") & (table.wait < 0)
    free &= ~table.with_compute & (table.launch >= 0)
    # The copy right before: the same stream, and nothing of it in between.
    place = _place_on_stream(activities)[table.device_row]
    waited = np.zeros(len(table), dtype=bool)
    waited[1:] = free[1:] & free[:-1] & (np.diff(place) == 1)
    waited[1:] &= (np.diff(table.device) == 0) & (np.diff(table.stream) == 0)
    waited[1:] &= table.direction[1:] != table.direction[:-1]
    waited[1:] &= (table.launch_end[1:] < table.end[:-1]) & (table.ts[1:] - table.end[:-1] <= HAND_OVER)
    later = np.flatnonzero(waited)
    lost = np.minimum(table.exposed[later], table.exposed[later - 1])
    back = np.argsort(order[later], kind="stable")
    return order[later][back], lost[back]


def _place_on_stream(activities: Activities) -> Ints:
    """For each activity (n,) how many its stream ran before it."""
    order = np.lexsort((activities.row, activities.stream, activities.device))
    device, stream = activities.device[order], activities.stream[order]
    begins = np.ones(len(order), dtype=bool)
    begins[1:] = (np.diff(device) != 0) | (np.diff(stream) != 0)
    position = np.arange(len(order))
    place = np.empty(len(order), dtype=np.int64)
    place[order] = position - np.maximum.accumulate(np.where(begins, position, 0))
    return place


def waited_for_engine(copies: Copies, devices: tuple[Device, ...]) -> Bools:
    """Which copies (n,) waited for a copy engine: each began just when a copy of another stream ended, and had been
    launched before."""
    behind = np.zeros(len(copies), dtype=bool)
    alone = np.array([device.id for device in devices if device.copy_engines == 1], dtype=np.int64)
    one_engine = are_among(copies.device, alone)
    direction = np.where(one_engine, "", copies.direction)
    for device in different(copies.device):
        for way in set(direction[copies.device == device]):
            rows = np.flatnonzero((copies.device == device) & (direction == way))
            ts, end, stream, launched = (
                column[rows] for column in (copies.ts, copies.end, copies.stream, copies.launch_end)
            )
            order = np.argsort(end, kind="stable")
            slot = np.searchsorted(end[order], ts + HAND_OVER, side="right") - 1
            before = order[np.maximum(slot, 0)]
            behind[rows] = (
                (slot >= 0)
                & (end[before] >= ts - HAND_OVER)
                & (stream[before] != stream)
                & (end[before] > launched)
                & (copies.launch[rows] >= 0)
            )
    return behind
