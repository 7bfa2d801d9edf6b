"""Where the device's time goes: compute, copies, collectives, what of them nothing hides, and idle time."""

from __future__ import annotations

import numpy as np
import pandas as pd

from syncscope.schema.report import Overlap
from syncscope.timeline.intervals import Bools, Ints, Union


def is_compute(device: pd.DataFrame) -> Bools:
    """Kernels that are no collectives."""
    found: Bools = (device["kind"] == "kernel").to_numpy(bool) & (device["collective"] == "").to_numpy(bool)
    return found


def union_of(device: pd.DataFrame, rows: Bools) -> Union:
    return Union(device["ts"].to_numpy(np.int64)[rows], device["end"].to_numpy(np.int64)[rows])


def compute_unions(device: pd.DataFrame) -> dict[int, Union]:
    """The time each device computes."""
    compute, where = is_compute(device), device["device"].to_numpy(np.int64)
    return {int(number): union_of(device, compute & (where == number)) for number in np.unique(where)}


def exposed_ns(ts: Ints, end: Ints, where: Ints, compute: dict[int, Union]) -> Ints:
    """Of intervals (n,) on devices ``where`` the ns in which their device computes nothing (``compute_unions``)."""
    found = end - ts
    for number, union in compute.items():
        mine = where == number
        found[mine] -= union.within(ts[mine], end[mine])
    return found


def busiest(device: pd.DataFrame) -> int | None:
    """The device with the most activity, the one that overlap and idle time speak of."""
    return int(device["device"].value_counts().index[0]) if len(device) else None


def overlap(device: pd.DataFrame, span: tuple[int, int], idle_by_cause: dict[str, float], steps: int) -> Overlap:
    """The figures of the rows of one device inside ``span`` (ns), in ms per step (``steps`` 0: of the whole span).

    A copy here moves data to or from the device; copies inside it count as busy time only. Each figure is the
    length of a union: two kernels side by side count once.
    """
    collective = (device["collective"] != "").to_numpy(bool)
    moves = (device["kind"] == "memcpy").to_numpy(bool) & (device["direction"] != "DtoD").to_numpy(bool)
    busy = union_of(device, np.ones(len(device), dtype=bool)).clipped(*span)
    compute = union_of(device, is_compute(device)).clipped(*span)
    copy, comm = union_of(device, moves).clipped(*span), union_of(device, collective).clipped(*span)

    def ms(length: int) -> float:
        return round(length * 1e-6 / max(steps, 1), 6)

    return Overlap(
        device_busy_ms=ms(busy.length),
        compute_ms=ms(compute.length),
        copy_ms=ms(copy.length),
        copy_exposed_ms=ms(copy.minus(compute)),
        comm_ms=ms(comm.length),
        comm_exposed_ms=ms(comm.minus(compute)),
        idle_ms=ms(span[1] - span[0] - busy.length),
        idle_by_cause=idle_by_cause,
    )
