"""Where the device's time goes: compute, copies and collectives, how much of these no compute hides, and idle time."""

from __future__ import annotations

import numpy as np

from syncscope.schema.report import Kernel, Overlap
from syncscope.timeline.intervals import Bools, Ints, Union
from syncscope.timeline.row_groups import number_texts
from syncscope.timeline.tables import Activities
from syncscope.trace.sets import different

COMPUTES = 0.8
"""Of the time: a device that computes for less has no kernel named that does so for longest."""


def is_compute(activities: Activities) -> Bools:
    """Which activities (n,) are kernels that are no collectives."""
    compute: Bools = (activities.kind == "kernel") & (activities.collective == "")
    return compute


def union_of(activities: Activities, rows: Bools) -> Union:
    """When any of these activities runs; ``rows`` (n,) is a mask."""
    return Union(activities.ts[rows], activities.end[rows])


def compute_unions(activities: Activities) -> dict[int, Union]:
    """When each device computes, by the device's number."""
    compute = is_compute(activities)
    return {
        int(number): union_of(activities, compute & (activities.device == number))
        for number in different(activities.device)
    }


def exposed_ns(ts: Ints, end: Ints, device: Ints, compute: dict[int, Union]) -> Ints:
    """For each interval (n,) the ns in which its device computes nothing (``compute_unions``)."""
    exposed = end - ts
    for number, union in compute.items():
        here = device == number
        exposed[here] -= union.within(ts[here], end[here])
    return exposed


def busiest(activities: Activities) -> int | None:
    """The device with the most activities, the first of several; ``None`` without any."""
    if not len(activities):
        return None
    devices, first, count = np.unique(activities.device, return_index=True, return_counts=True)
    return int(devices[np.lexsort((first, -count))[0]])


def overlap(activities: Activities, span: tuple[int, int], idle_by_cause: dict[str, float], steps: int) -> Overlap:
    """The figures of the activities of one device inside ``span`` (ns), in ms per step (``steps`` 0: of the whole
    span).

    A copy here moves data to or from the device; copies inside it count as busy time only. Each figure is the
    length of a union: two kernels side by side count once.
    """
    moves = (activities.kind == "memcpy") & (activities.direction != "DtoD")
    busy = Union(activities.ts, activities.end).clipped(*span)
    compute = union_of(activities, is_compute(activities)).clipped(*span)
    copy, comm = (union_of(activities, rows).clipped(*span) for rows in (moves, activities.collective != ""))

    def ms(length: int) -> float:
        return round(length * 1e-6 / max(steps, 1), 6)

    computes = compute.length >= COMPUTES * (span[1] - span[0]) > 0
    name, longest = _longest_kernel(activities, span) if computes else ("", 0)
    return Overlap(
        device_busy_ms=ms(busy.length),
        compute_ms=ms(compute.length),
        copy_ms=ms(copy.length),
        copy_exposed_ms=ms(copy.minus(compute)),
        comm_ms=ms(comm.length),
        comm_exposed_ms=ms(comm.minus(compute)),
        idle_ms=ms(span[1] - span[0] - busy.length),
        idle_by_cause=idle_by_cause,
        longest_kernel=Kernel(name=name, ms=ms(longest)) if longest else None,
    )


def _longest_kernel(activities: Activities, span: tuple[int, int]) -> tuple[str, int]:
    """The kernel, no collective, that runs for longest inside ``span`` in all, and for how long (ns)."""
    rows = np.flatnonzero(is_compute(activities))
    number, names = number_texts(activities.name[rows])
    inside = np.minimum(activities.end[rows], span[1]) - np.maximum(activities.ts[rows], span[0])
    lengths = np.bincount(number, np.maximum(inside, 0), len(names))
    longest = int(lengths.argmax())
    return str(names[longest]), int(lengths[longest])
