"""Memory that the allocator gets from the driver and gives back: which calls belong together, and who causes them."""

from __future__ import annotations

import numpy as np
import pandas as pd

from syncscope.timeline.calls import COMMANDS
from syncscope.timeline.intervals import Bools, Ints
from syncscope.timeline.pins import ENTRY, OPS
from syncscope.timeline.places import Place


def emptying(waits: pd.DataFrame, places: tuple[Place, ...]) -> Bools:
    """Which waits (n,) are inside ``torch.cuda.empty_cache()``."""
    return np.array([_empties(places[place]) for place in waits["place"]], dtype=bool)


def _empties(place: Place) -> bool:
    at = place.at
    inside = at is not None and at.function.endswith("empty_cache") and at.file.endswith("torch/cuda/memory.py")
    return inside or place.entry.endswith("empty_cache")


def asking(waits: pd.DataFrame, places: tuple[Place, ...]) -> Bools:
    """Which waits (n,) are calls for memory that no pinning of a tensor makes."""
    pins = [
        places[place].entry == ENTRY or not set(OPS).isdisjoint(ops)
        for place, ops in zip(waits["place"], waits["ops"], strict=True)
    ]
    found: Bools = waits["kind"].isin(["alloc", "free"]).to_numpy(bool) & ~np.array(pins, dtype=bool)
    return found


def owners(emptied: Bools) -> Ints:
    """For each memory call (n,) the one of those that ``emptied`` the cache which answers for it: the last one before,
    at the begin of a trace the first; −1 where there is none."""
    rows = np.flatnonzero(emptied)
    if not len(rows):
        return np.full(len(emptied), -1, dtype=np.int64)
    slot = np.searchsorted(rows, np.arange(len(emptied)), side="right") - 1
    return rows[np.maximum(slot, 0)]


def runs(waits: pd.DataFrame, calls: pd.DataFrame) -> Ints:
    """A number for each wait (n,), the same for those of a thread that gave the device nothing in between."""
    commands = calls[calls["role"].isin(COMMANDS).to_numpy(bool)]
    tid, before = waits["tid"].to_numpy(np.int64), np.zeros(len(waits), dtype=np.int64)
    for thread in np.unique(tid):
        times = commands["ts"].to_numpy(np.int64)[(commands["tid"] == thread).to_numpy(bool)]
        before[tid == thread] = np.searchsorted(times, waits["ts"].to_numpy(np.int64)[tid == thread])
    found: Ints = pd.MultiIndex.from_arrays([tid, before]).factorize()[0].astype(np.int64)
    return found
