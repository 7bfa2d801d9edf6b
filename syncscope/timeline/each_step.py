"""Figures of every single step, for what is judged by how much steps differ."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pandas as pd

from syncscope.timeline.copies import blocks_alone
from syncscope.timeline.intervals import Ints, Union
from syncscope.timeline.waits import is_wait


def blocked(steps: pd.DataFrame, waits: pd.DataFrame, copies: pd.DataFrame) -> Ints:
    """For each step the ns in which some thread is blocked, in a wait or in a copy that blocks with no wait behind it.
    Threads that are blocked at once count once."""
    waits = waits[is_wait(waits["kind"])]
    alone = copies[blocks_alone(copies)]
    begin = np.concatenate([waits["begin"].to_numpy(np.int64), alone["launch_ts"].to_numpy(np.int64)])
    end = np.concatenate([waits["end"].to_numpy(np.int64), alone["launch_end"].to_numpy(np.int64)])
    return Union(begin, end).within(steps["ts"].to_numpy(np.int64), steps["end"].to_numpy(np.int64))


def copy_exposed(steps: pd.DataFrame, copies: pd.DataFrame, compute: Union) -> Ints:
    """For each step the ns of the copies it asked for, whenever they run, that ``compute`` does not hide. ``copies``
    are those of one device; copies inside it do not count."""
    copies = copies[((copies["direction"] != "DtoD") & (copies["step"] >= 0)).to_numpy(bool)].sort_values("step")
    ts, end = copies["ts"].to_numpy(np.int64), copies["end"].to_numpy(np.int64)
    # In order of steps, those of one step lie between two cuts.
    cuts = np.searchsorted(copies["step"].to_numpy(np.int64), np.arange(len(steps) + 1)).tolist()
    return np.array([Union(ts[a:b], end[a:b]).minus(compute) for a, b in pairwise(cuts)], dtype=np.int64)
