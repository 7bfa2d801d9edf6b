"""The launch queue: how far the host is ahead of the device, and whether it is ahead at all."""

from __future__ import annotations

import numpy as np
import pandas as pd

from syncscope.timeline.intervals import Ints

SHARE = 0.9
"""Share of launches that return after their kernel's end from which on every launch counts as waiting."""

ENOUGH = 20
"""Launches from which on that share speaks for itself, without a recording that says so."""


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


def every_launch_waits(calls: pd.DataFrame, launch: Ints, device: pd.DataFrame, said: bool) -> bool:
    """Whether kernel launches return only when their kernel has ended, as with ``CUDA_LAUNCH_BLOCKING=1``; ``said`` is
    whether a recording says that it was set. It is without effect when it is set too late."""
    done = last_ends(len(calls), launch, device)
    kernels = (calls["role"] == "launch").to_numpy(bool) & (done >= 0)
    waited = calls["end"].to_numpy(np.int64)[kernels] >= done[kernels]
    enough = len(waited) >= (1 if said else ENOUGH)
    return bool(enough and waited.mean() >= SHARE)
