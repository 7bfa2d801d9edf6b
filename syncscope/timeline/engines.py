"""Copy engines: how many a device has, and which copies had to wait for another one."""

from __future__ import annotations

import numpy as np
import pandas as pd

from syncscope.timeline.intervals import Bools, Ints
from syncscope.timeline.timeline import HOST_COPIES
from syncscope.trace.model import Device

HAND_OVER = 20_000
"""Nanoseconds between the end of one copy and the begin of the next that waited for it: an H200 takes 4 to 10 µs."""


def engines(devices: tuple[Device, ...], copies: pd.DataFrame, device: int | None) -> int | None:
    """How many copies ``device`` can make at once, as far as the trace tells: it says so, or two directions are seen
    to run at one moment. ``copies`` is ``Timeline.copies``."""
    known = {one.id: one.copy_engines for one in devices}.get(-1 if device is None else device)
    if known is not None:
        return known
    mine = copies[(copies["device"] == device).to_numpy(bool)]
    ins, outs = (mine[(mine["direction"] == direction).to_numpy(bool)] for direction in HOST_COPIES)
    # Something out runs beside something in when more of it had begun by the other's end than was over by its begin.
    ts, end = (np.sort(outs[column].to_numpy(np.int64)) for column in ("ts", "end"))
    begun = np.searchsorted(ts, ins["end"].to_numpy(np.int64), side="left")
    over = np.searchsorted(end, ins["ts"].to_numpy(np.int64), side="right")
    return 2 if (begun > over).any() else None


def serialised(copies: pd.DataFrame, device: pd.DataFrame) -> pd.DataFrame:
    """The asynchronous copies of pinned memory that waited for one in the other direction, right before them on a
    stream that does not compute: rows of ``copies``, with ``lost``, the ns that nothing hides of the shorter one."""
    table = copies.sort_values(["device", "stream", "ts"], kind="stable")
    place = device.groupby(["device", "stream"]).cumcount().to_numpy()[table["row"].to_numpy(np.int64)]
    free = table["direction"].isin(HOST_COPIES) & (table["memory"] == "pinned") & (table["wait"] < 0)
    free &= ~table["with_compute"] & (table["launch"] >= 0)
    before = table[["device", "stream", "end", "exposed"]].shift(fill_value=-1)
    held = free & free.shift(fill_value=False) & (np.diff(place, prepend=-1) == 1)
    held &= (table[["device", "stream"]] == before[["device", "stream"]]).all(axis=1)
    held &= table["direction"] != table["direction"].shift(fill_value="")
    held &= (table["launch_end"] < before["end"]) & (table["ts"] - before["end"] <= HAND_OVER)
    lost = np.minimum(table["exposed"], before["exposed"])
    found: pd.DataFrame = table.assign(lost=lost)[held.to_numpy(bool)].sort_index()
    return found


def queued_behind(copies: pd.DataFrame, devices: tuple[Device, ...]) -> Bools:
    """Which copies began just when one of another stream ended, though launched before: they shared an engine."""
    found = np.zeros(len(copies), dtype=bool)
    count = {device.id: device.copy_engines for device in devices}
    direction = copies["direction"].where(copies["device"].map(count) != 1, "")
    for _, mine in copies.groupby(["device", direction]):
        rows = mine.index.to_numpy(np.int64)
        ts, end, stream, launched = (mine[c].to_numpy(np.int64) for c in ("ts", "end", "stream", "launch_end"))
        order: Ints = np.argsort(end, kind="stable")
        slot = np.searchsorted(end[order], ts + HAND_OVER, side="right") - 1
        before = order[np.maximum(slot, 0)]
        found[rows] = (
            (slot >= 0)
            & (end[before] >= ts - HAND_OVER)
            & (stream[before] != stream)
            & (end[before] > launched)
            & (mine["launch"] >= 0).to_numpy(bool)
        )
    return found
