"""The host's part of a program: which threads act as one, and how much work lies before and inside each call."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pandas as pd

from syncscope.timeline import Timeline
from syncscope.timeline.intervals import Bools, Floats, Ints

HOST_ROWS = {
    "call": "int64",  # row in Timeline.calls, −1 none
    "step": "int64",  # row in Timeline.steps
    "mark": "bool",  # no call, but the end of a step
    "chain": "int64",  # of host work; −1 for device work that no call of the trace launched
    "follows": "bool",  # what this thread did here it did after the last call of chain 0
    "begin": "float64", "end": "float64",  # ns in the trace, since the first step began
    "pre": "float64", "own": "float64",  # ns of host work before the call and inside it
}  # fmt: skip

LONG_CALL = 20_000
"""Nanoseconds from which on a call shows whether another thread was working meanwhile."""


def roles(timeline: Timeline, host: pd.DataFrame) -> npt.NDArray[np.object_]:
    """The role of each item's call, ``""`` for none."""
    role = np.append(timeline.calls["role"].astype(object).to_numpy(), "")
    found: npt.NDArray[np.object_] = role[host["call"].to_numpy(np.int64)]
    return found


def host_rows(timeline: Timeline) -> pd.DataFrame:
    """Calls inside the steps, the steps' ends and launches that the trace lacks, in order of time (``HOST_ROWS``)."""
    steps, calls = timeline.steps, timeline.calls
    base, last = int(steps["ts"].min()), int(steps["end"].max())
    inside = np.flatnonzero(((calls["ts"] >= base) & (calls["ts"] < last)).to_numpy(bool))
    device = timeline.trace.device
    alone = (timeline.launch < 0) & ((device["ts"] >= base) & (device["ts"] < last)).to_numpy(bool)
    orphans = np.flatnonzero(alone)
    ends = steps["end"].to_numpy(np.int64)
    mine = calls.iloc[inside]
    begin = np.concatenate([mine["ts"], ends, device["ts"].to_numpy(np.int64)[orphans]]) - base
    end = np.concatenate([mine["end"], ends, device["ts"].to_numpy(np.int64)[orphans]]) - base
    none = np.full(len(ends) + len(orphans), -1, dtype=np.int64)
    tid = np.concatenate([mine["tid"], np.full(len(ends), lead(timeline)), np.full(len(orphans), -1)])
    mark = np.zeros(len(begin), dtype=bool)
    mark[len(inside) : len(inside) + len(ends)] = True
    order = np.lexsort((~mark, begin))
    begin, end, mark, tid = begin[order].astype(float), end[order].astype(float), mark[order], tid[order]
    chain = _chains(tid, begin, end, mark)
    pre, own, follows = _work(chain, begin, end)
    found: pd.DataFrame = pd.DataFrame({
        "call": np.concatenate([inside, none])[order],
        "orphan": np.concatenate([none[:1].repeat(len(inside) + len(ends)), orphans])[order],
        "step": np.minimum(np.cumsum(mark) - mark, len(ends) - 1),
        "mark": mark, "chain": chain, "follows": follows, "begin": begin, "end": end, "pre": pre, "own": own,
    })  # fmt: skip
    return found


def lead(timeline: Timeline) -> int:
    """The thread of the steps, else the one with the most calls."""
    tids = timeline.calls["tid"]
    stepping = int(timeline.steps["tid"].iloc[0])
    return stepping if (tids == stepping).any() else int(tids.mode().iloc[0])


def _chains(tid: Ints, begin: Floats, end: Floats, mark: Bools) -> Ints:
    """The chain of each item. A thread that never calls while a call of the leading one lasts, nor the other way
    round, takes turns with it: main thread and autograd thread are one chain."""
    lead = int(tid[mark][0])
    chain = np.where(tid == lead, 0, -1)
    number = 0
    for other in np.unique(tid[(tid != lead) & (tid >= 0)]):
        mine, theirs = tid == other, (tid == lead) & ~mark
        together = _during(begin[mine], begin[theirs], end[theirs]) + _during(begin[theirs], begin[mine], end[mine])
        number += together > 0
        chain[mine] = number if together else 0
    return chain


def _during(times: Floats, begin: Floats, end: Floats) -> int:
    """How many of ``times`` lie inside one of the long intervals."""
    long = end - begin >= LONG_CALL
    upto, from_ = np.searchsorted(times, end[long], side="left"), np.searchsorted(times, begin[long], side="right")
    return int((upto - from_).sum())


def _work(chain: Ints, begin: Floats, end: Floats) -> tuple[Floats, Floats, Bools]:
    """Host work before and inside each item, and whether it follows chain 0 rather than its own."""
    pre, own, follows = np.zeros(len(begin)), np.zeros(len(begin)), np.zeros(len(begin), dtype=bool)
    lead = np.flatnonzero(chain == 0)
    lead_reach = np.maximum.accumulate(end[lead]) if len(lead) else end[lead]
    for number in range(int(chain.max(initial=0)) + 1):
        rows = np.flatnonzero(chain == number)
        reach = np.concatenate([[0.0], np.maximum.accumulate(end[rows])[:-1]])
        if number:
            # A thread beside the leading one was set off by it, unless its own work lasted longer.
            before = np.searchsorted(begin[lead], begin[rows], side="left")
            theirs = np.concatenate([[0.0], lead_reach])[before]
            follows[rows] = (theirs > reach) & (theirs <= begin[rows])
            reach = np.where(follows[rows], theirs, reach)
        pre[rows] = np.maximum(begin[rows] - reach, 0)
        own[rows] = np.maximum(end[rows] - np.maximum(begin[rows], reach), 0)
    return pre, own, follows
