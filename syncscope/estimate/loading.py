"""Data loading: time in which the host waits for the next batch is no work of its own.

Worker processes make batches at a pace. A step that saves time elsewhere then only waits longer for the next one: its
batch comes a period after the last. Without workers the thread loads by itself, and that is work like any other.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd

from syncscope.estimate.chains import lead
from syncscope.timeline import Timeline
from syncscope.timeline.intervals import Floats

RECORDED = "DataLoader"
"""The entry point that the collector records: the next batch."""

WORKERS, ALONE = "_MultiProcessingDataLoaderIter", "_SingleProcessDataLoaderIter"
"""What the profiler's annotations call a loader with workers and one without."""

LEAST_SHARE = 0.02
"""Share of the step below which waiting for a batch is not looked at."""


@dataclass(frozen=True)
class Loading:
    """Of each item (n,), ns."""

    length: Floats
    """Of the host's work before the call, what went into getting a batch; 0 none."""
    period: Floats
    """From the batch before to this one."""
    workers: bool | None
    """Whether worker processes made the batches; ``None`` where the trace does not tell."""


def find_loading(timeline: Timeline, host: pd.DataFrame) -> Loading:
    """The batches that chain 0 got inside the steps."""
    begin, end, names = _batches(timeline)
    length, period = np.zeros(len(host)), np.zeros(len(host))
    step = float(timeline.steps["dur"].mean())
    rows = np.flatnonzero((host["chain"] == 0).to_numpy(bool))
    called, pre = host["begin"].to_numpy()[rows], host["pre"].to_numpy()[rows]
    order = np.argsort(end, kind="stable")
    begin, end = begin[order], end[order]
    slot = np.searchsorted(called, end, side="left")
    for number, (first, last, at) in enumerate(zip(begin, end, slot, strict=True)):
        inside = last - max(first, called[at] - pre[at]) if at < len(rows) else 0.0
        # The first batch has none before it; it takes the usual time.
        apart = last - end[number - 1] if number else float(np.median(np.diff(end))) if len(end) > 1 else 0.0
        if inside >= LEAST_SHARE * step and apart > 0:
            length[rows[at]], period[rows[at]] = inside, apart
    return Loading(length, period, any(WORKERS in name for name in names) if names else None)


def _batches(timeline: Timeline) -> tuple[Floats, Floats, set[str]]:
    """When the steps' thread got its batches (ns since the first step began), and the names that the trace has for it:
    the collector's record, where there is one, and the annotation of the loader."""
    base, last = int(timeline.steps["ts"].min()), int(timeline.steps["end"].max())
    loads = timeline.loads
    recorded = (loads["name"] == RECORDED).to_numpy(bool)
    noted = loads["name"].astype(str).str.contains(f"{WORKERS}|{ALONE}").to_numpy(bool)
    end = loads["end"].to_numpy(np.int64)
    mine = (recorded if recorded.any() else noted) & (end > base) & (end <= last)
    mine &= (loads["tid"] == lead(timeline)).to_numpy(bool)
    begin = loads["ts"].to_numpy(np.int64)
    return (begin[mine] - base).astype(float), (end[mine] - base).astype(float), set(loads["name"][noted].astype(str))
