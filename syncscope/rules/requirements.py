"""What a copy needs to run beside compute, and which of it each copy lacks."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pandas as pd

from syncscope.timeline import Timeline
from syncscope.timeline.copies import queued_behind
from syncscope.timeline.intervals import Bools, Ints
from syncscope.timeline.overlap import is_compute
from syncscope.timeline.waits import is_wait

PAGEABLE, HOST, STREAM = "pageable memory", "host waits", "same stream"
ENGINE, WAIT, NOTHING = "no free engine", "host in a wait", "nothing beside"
REQUIREMENTS = (PAGEABLE, HOST, STREAM, ENGINE, WAIT, NOTHING)

MISSING = {
    PAGEABLE: "the host side is pageable memory, which no copy can overlap from; it must be pinned first",
    HOST: "the host waits for the copy (a blocking copy), so nothing is launched that could run beside it",
    STREAM: "it runs on the same stream as the compute, so one waits for the other; it needs a stream of its own",
    ENGINE: "another copy holds the copy engine of this direction; there is no free one",
    WAIT: "the host sits in a wait meanwhile, and launches nothing that could run beside it",
    NOTHING: "it is free to overlap, but nothing was queued that the device could compute meanwhile",
}
FIXES = {
    PAGEABLE: "Pin the host memory (DataLoader(pin_memory=True), or a buffer pinned once); then copy with "
    "non_blocking=True on a stream of its own.",
    HOST: "Pass non_blocking=True, and put the copy on a stream of its own.",
    STREAM: "Copy the next batch on a stream of its own (with torch.cuda.stream(copy_stream)) while this one computes, "
    "and let the compute stream wait for it (wait_stream).",
    ENGINE: "Copy in one direction from one stream at a time, or gather the copies into one.",
    WAIT: "Launch the compute before the host waits, or leave the wait to the device (stream.wait_event).",
    NOTHING: "Start the copy earlier, while the previous step still computes, or give it work to hide behind.",
}


LEAST_SHARE = 0.01
"""Exposed time of a site, as a share of the step, below which it is not spoken of."""

LEAST_NS = 20_000
"""Exposed time of a site in ns per step below which it is not spoken of."""


def worth_saying(exposed: int | None, timeline: Timeline, share: float = LEAST_SHARE) -> bool:
    """Whether so much exposed time, ns over all steps, is worth a finding: ``share`` of the step, and not tiny."""
    span, steps = timeline.span, max(len(timeline.steps), 1)
    if exposed is None or span is None:
        return False
    return exposed / steps >= max(LEAST_NS, share * (span[1] - span[0]) / steps)


def missing(timeline: Timeline, prevented: Ints) -> npt.NDArray[np.object_]:
    """For each row of ``timeline.copies`` the first requirement that it lacks; ``prevented`` as of ``prevented_by``."""
    copies = timeline.copies
    lacks = np.full(len(copies), NOTHING, dtype=object)
    lacks[prevented >= 0] = WAIT
    lacks[queued_behind(copies, timeline.trace.devices)] = ENGINE
    lacks[copies["with_compute"].to_numpy(bool)] = STREAM
    lacks[(copies["wait"] >= 0).to_numpy(bool)] = HOST
    lacks[(copies["memory"] == "pageable").to_numpy(bool)] = PAGEABLE
    return lacks


def prevented_by(timeline: Timeline) -> Ints:
    """For each row of ``timeline.copies`` the row in ``waits`` that the host sat in for half of the copy or more before
    it launched the next kernel that computes, −1 for none."""
    copies, device = timeline.copies, timeline.trace.device
    found = np.full(len(copies), -1, dtype=np.int64)
    kernels = device[is_compute(device) & (timeline.launch >= 0)]
    waits = timeline.waits[is_wait(timeline.waits["kind"])]
    if not len(kernels) or not len(waits):
        return found
    ts, end = copies["ts"].to_numpy(np.int64), copies["end"].to_numpy(np.int64)
    begin, over, tid = (waits[column].to_numpy(np.int64) for column in ("begin", "end", "tid"))
    # Waits of one thread follow one another, so the one under way in the middle of a copy has the most of it.
    calls = timeline.calls.loc[timeline.launch[kernels.index]]
    for thread in np.unique(tid):
        mine = np.flatnonzero(tid == thread)
        launched = np.sort(calls["ts"].to_numpy(np.int64)[(calls["tid"] == thread).to_numpy(bool)])
        wait = mine[np.maximum(np.searchsorted(begin[mine], (ts + end) // 2, side="right") - 1, 0)]
        inside = 2 * (np.minimum(over[wait], end) - np.maximum(begin[wait], ts)) >= end - ts
        # Something to compute is launched at last, and nothing that was launched before the wait is still held back.
        after = np.searchsorted(launched, over[wait], side="left") < len(launched)
        held = inside & after & ~_still_held(timeline, kernels, begin[wait], end)
        found[held] = waits.index.to_numpy(np.int64)[wait[held]]
    return found


def _still_held(timeline: Timeline, kernels: pd.DataFrame, before: Ints, until: Ints) -> Bools:
    """Whether any kernel launched before one time begins only at or behind another."""
    launched = timeline.calls["ts"].to_numpy(np.int64)[timeline.launch[kernels.index]]
    order = np.argsort(launched, kind="stable")
    latest = np.maximum.accumulate(kernels["ts"].to_numpy(np.int64)[order])
    slot = np.searchsorted(launched[order], before, side="left") - 1
    found: Bools = (slot >= 0) & (latest[np.maximum(slot, 0)] >= until)
    return found
