"""Stretches of a program that nothing changes and that hold no wait, worked out beforehand as one.

A stretch of launches by one chain of host work on one stream does two things: it takes the host some work, and the
stream is done at the later of two times, its earlier end plus all activities, or the launch that held it up most plus
what follows that one. Both are sums along the stretch, so they need no walk through it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd

from syncscope.timeline.intervals import Bools, Floats

LONGEST = 32
"""Items of a stretch at most: places in the launch queue are counted by stretches."""

OUTLASTS = 16.0
"""Times the mean of its stream that an activity must last to stand between two stretches: a queue waits for it long."""


@dataclass(frozen=True)
class Run:
    """One stretch; times in ns."""

    chain: int
    stream: int
    """−1 when it launches nothing."""
    launches: int
    work: float
    """Of the host, at scale 1."""
    busy: float
    """Activities and the gaps before them."""
    behind: Floats
    """(scales,): from the host's begin of the stretch to the stream's end, when a launch holds the stream up."""
    alone: bool


Step = list["Run | int"]
"""What happens in a step: stretches, and the numbers of items that stand by themselves."""


def find_runs(items: pd.DataFrame, work: Floats, apart: Bools, scales: Floats) -> list[Step]:
    """The steps. ``work`` (n,) is each item's host work at scale 1, ``apart`` (n,) which stand by themselves."""
    first = _begins(items, apart)
    starts = np.flatnonzero(first)
    last = np.append(starts[1:], len(items)) - 1
    stream = items["stream"].to_numpy(np.int64)
    launched = stream >= 0
    # Running sums; a stretch is the difference of two of them.
    hosts, busy = np.cumsum(work), np.cumsum(np.where(launched, items["dur"] + items["gap"], 0.0))
    hosts_before, busy_before = hosts - work, busy - np.where(launched, items["dur"] + items["gap"], 0.0)
    tail = np.where(launched, items["lat"] + items["dur"] - busy, -np.inf)
    behind = np.maximum.reduceat(hosts[:, None] * scales + tail[:, None], starts, axis=0)
    behind += busy[last, None] - hosts_before[starts, None] * scales
    most = np.maximum.reduceat(stream, starts)
    count = np.add.reduceat(launched.astype(np.int64), starts)
    chain, alone = items["chain"].to_numpy(np.int64), items["alone"].to_numpy(bool)
    steps: list[Step] = [[] for _ in range(int(items["step"].max()) + 1)]
    total, length = hosts[last] - hosts_before[starts], busy[last] - busy_before[starts]
    for number, (item, step) in enumerate(zip(starts.tolist(), items["step"].to_numpy()[starts].tolist(), strict=True)):
        if apart[item]:
            steps[step].append(item)
            continue
        run = Run(
            int(chain[item]), int(most[number]), int(count[number]), float(total[number]), float(length[number]),
            behind[number], bool(alone[item : last[number] + 1].any()),
        )  # fmt: skip
        steps[step].append(run)
    return steps


def _begins(items: pd.DataFrame, apart: Bools) -> Bools:
    """Which items begin a stretch: those apart and what follows them, those that outlast others and what follows them,
    another chain, stream or sharing, a new step."""
    long = (items["dur"] > OUTLASTS * items.groupby("stream")["dur"].transform("mean")).to_numpy(bool)
    stream = items["stream"].where(items["stream"] >= 0).bfill().fillna(-1).to_numpy(np.int64)
    launched = (items["stream"] >= 0).to_numpy(bool)
    alone = items["alone"].where(launched).bfill().fillna(False).to_numpy(bool)
    columns = (items["chain"].to_numpy(np.int64), items["step"].to_numpy(np.int64), stream, alone)
    first = apart | long
    first[1:] |= first[:-1].copy()
    first[0] = True
    for column in columns:
        first[1:] |= column[1:] != column[:-1]
    since = np.arange(len(first)) - np.maximum.accumulate(np.where(first, np.arange(len(first)), 0))
    found: Bools = first | (since % LONGEST == 0)
    return found
