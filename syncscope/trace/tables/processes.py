"""Files into which the traces of several ranks were merged: the rows of one of the processes."""

from __future__ import annotations

import numpy as np

from syncscope.trace.decoding.columns import Int
from syncscope.trace.rows import Rows

LEAST_ROWS = 0.01
"""Of the devices' rows, at least as many are of a process that counts."""


def find_merged(runtime: Rows, device: Rows) -> dict[int, Int]:
    """The devices of each process that launches work, where there are several and none uses another's device: the
    ranks of a run whose traces were merged. Empty for the trace of one process."""
    if len(runtime) == 0 or (runtime["pid"] == runtime["pid"][0]).all():
        return {}
    owner = find_owners(runtime, device)
    pids, counts = np.unique(owner[owner >= 0], return_counts=True)
    pids = pids[counts >= LEAST_ROWS * len(device)]
    devices = {int(pid): np.unique(device["device"][owner == pid]) for pid in pids.tolist()}
    every = np.concatenate([*devices.values(), np.empty(0, dtype=np.int64)])
    return devices if len(devices) > 1 and len(np.unique(every)) == len(every) else {}


def find_owners(runtime: Rows, device: Rows) -> Int:
    """The process that launched each row of a device, −1 where the file does not hold the launch."""
    known = np.flatnonzero(runtime["correlation"] >= 0)
    known = known[np.argsort(runtime["correlation"][known], kind="stable")]
    if not len(known):
        return np.full(len(device), -1, dtype=np.int64)
    keys = runtime["correlation"][known]
    slot = np.minimum(np.searchsorted(keys, device["correlation"]), len(keys) - 1)
    return np.where(keys[slot] == device["correlation"], runtime["pid"][known[slot]], -1)
