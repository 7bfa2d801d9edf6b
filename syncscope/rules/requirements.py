"""What a copy needs to run beside compute, and which of it each copy lacks."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from syncscope.timeline import Timeline
from syncscope.timeline.intervals import Bools

PAGEABLE, HOST, STREAM = "pageable memory", "host waits", "same stream"
ENGINE, NOTHING = "no free engine", "nothing beside"

MISSING = {
    PAGEABLE: "the host side is pageable memory, which no copy can overlap from; it must be pinned first",
    HOST: "the host waits for the copy (a blocking copy), so nothing is launched that could run beside it",
    STREAM: "it runs on the same stream as the compute, so one waits for the other; it needs a stream of its own",
    ENGINE: "another copy holds the copy engine of this direction; there is no free one",
    NOTHING: "it is free to overlap, but nothing was queued for the device to compute meanwhile",
}
FIXES = {
    PAGEABLE: "Pin the host memory (DataLoader(pin_memory=True), or a buffer pinned once); then copy with "
    "non_blocking=True on a stream of its own.",
    HOST: "Pass non_blocking=True, and put the copy on a stream of its own.",
    STREAM: "Copy the next batch on a stream of its own (with torch.cuda.stream(copy_stream)) while this one computes, "
    "and let the compute stream wait for it (wait_stream).",
    ENGINE: "Copy in one direction from one stream at a time, or gather the copies into one.",
    NOTHING: "Start the copy earlier, while the previous step still computes, or give it work to hide behind.",
}

ENGINE_SLACK = 5_000
"""Nanoseconds between the end of one copy and the begin of the next on the same engine."""


def missing(timeline: Timeline) -> npt.NDArray[np.object_]:
    """For each row of ``timeline.copies`` the first requirement that it lacks."""
    copies = timeline.copies
    lacks = np.full(len(copies), NOTHING, dtype=object)
    lacks[_queued_behind_copies(timeline)] = ENGINE
    lacks[copies["with_compute"].to_numpy(bool)] = STREAM
    lacks[(copies["wait"] >= 0).to_numpy(bool)] = HOST
    lacks[(copies["memory"] == "pageable").to_numpy(bool)] = PAGEABLE
    return lacks


def _queued_behind_copies(timeline: Timeline) -> Bools:
    """Which copies began just when one of another stream ended, though launched before: they shared an engine."""
    copies = timeline.copies
    found = np.zeros(len(copies), dtype=bool)
    engines = {device.id: device.copy_engines for device in timeline.trace.devices}
    direction = copies["direction"].where(copies["device"].map(engines) != 1, "")
    for _, mine in copies.groupby(["device", direction]):
        rows = mine.index.to_numpy(np.int64)
        order = np.argsort(mine["end"].to_numpy(np.int64), kind="stable")
        ends, streams = mine["end"].to_numpy(np.int64)[order], mine["stream"].to_numpy(np.int64)[order]
        ts = mine["ts"].to_numpy(np.int64)
        slot = np.searchsorted(ends, ts + ENGINE_SLACK, side="right") - 1
        before = np.maximum(slot, 0)
        found[rows] = (
            (slot >= 0)
            & (ends[before] >= ts - ENGINE_SLACK)
            & (streams[before] != mine["stream"].to_numpy(np.int64))
            & (ends[before] > mine["launch_end"].to_numpy(np.int64))
            & (mine["launch"] >= 0).to_numpy(bool)
        )
    return found
