"""Memory that the allocator gets from the driver and gives back: which calls belong together, and who causes them."""

from __future__ import annotations

import numpy as np

from syncscope.timeline.calls import COMMANDS
from syncscope.timeline.frames import accepts_frames
from syncscope.timeline.intervals import Bools, Ints
from syncscope.timeline.pins import ENTRY, OPS
from syncscope.timeline.places import Place
from syncscope.timeline.tables import Calls, Waits, number_groups


@accepts_frames
def emptying(waits: Waits, places: tuple[Place, ...]) -> Bools:
    """Which waits (n,) are inside ``torch.cuda.empty_cache()``."""
    return np.array([_empties(places[place]) for place in waits.place], dtype=bool)


def _empties(place: Place) -> bool:
    at = place.at
    inside = at is not None and at.function.endswith("empty_cache") and at.file.endswith("torch/cuda/memory.py")
    return inside or place.entry.endswith("empty_cache")


@accepts_frames
def asking(waits: Waits, places: tuple[Place, ...]) -> Bools:
    """Which waits (n,) are calls for memory that no pinning of a tensor makes."""
    pins = [
        places[place].entry == ENTRY or not set(OPS).isdisjoint(ops)
        for place, ops in zip(waits.place, waits.ops, strict=True)
    ]
    asks: Bools = np.isin(waits.kind, ["alloc", "free"]) & ~np.array(pins, dtype=bool)
    return asks


def owners(emptied: Bools) -> Ints:
    """For each call for memory (n,) the one that emptied the cache and so is the reason for it: the last one before, at
    the begin of a trace the first; −1 where none of them ``emptied`` (n,) it."""
    rows = np.flatnonzero(emptied)
    if not len(rows):
        return np.full(len(emptied), -1, dtype=np.int64)
    slot = np.searchsorted(rows, np.arange(len(emptied)), side="right") - 1
    return rows[np.maximum(slot, 0)]


@accepts_frames
def runs(waits: Waits, calls: Calls) -> Ints:
    """A number for each wait (n,), the same for those of a thread that gave the device nothing in between."""
    commands = np.isin(calls.role, list(COMMANDS))
    before = np.zeros(len(waits), dtype=np.int64)
    for thread in np.unique(waits.tid):
        own = waits.tid == thread
        before[own] = np.searchsorted(calls.ts[commands & (calls.tid == thread)], waits.ts[own])
    return number_groups(waits.tid, before)
