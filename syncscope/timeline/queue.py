"""The launch queue: how far the host is ahead of the device, and whether it is ahead at all."""

from __future__ import annotations

import numpy as np
import pandas as pd

from syncscope.timeline.intervals import Ints


def queued(calls: pd.DataFrame, launch: Ints, device: pd.DataFrame) -> Ints:
    """For each of ``calls`` (n,), how many calls before it had given the device work that was not done when it began.

    ``launch`` is a row of ``calls`` for each row of ``device``, −1 none.
    """
    done = last_ends(len(calls), launch, device)
    gave = done >= 0
    ts = calls["ts"].to_numpy(np.int64)
    # What was asked for before it, less what was done by then.
    asked = np.searchsorted(np.sort(ts[gave]), ts, side="left")
    ended = np.searchsorted(np.sort(done[gave]), ts, side="right")
    found: Ints = np.maximum(asked - ended, 0)
    return found


def last_ends(calls: int, launch: Ints, device: pd.DataFrame) -> Ints:
    """For each call (n,), when the last of the work that it gave the device ended, −1 where it gave none."""
    done = np.full(calls, -1, dtype=np.int64)
    known = launch >= 0
    np.maximum.at(done, launch[known], device["end"].to_numpy(np.int64)[known])
    return done


def waited_share(calls: pd.DataFrame, launch: Ints, device: pd.DataFrame) -> tuple[float, int]:
    """The share of kernel launches that returned only when their kernel had ended, and how many launches there are."""
    done = last_ends(len(calls), launch, device)
    kernels = (calls["role"] == "launch").to_numpy(bool) & (done >= 0)
    many = int(kernels.sum())
    waited = calls["end"].to_numpy(np.int64)[kernels] >= done[kernels]
    return (float(waited.mean()) if many else 0.0), many
