"""Calls by which the allocator gets memory from the driver and gives it back: which belong together, and why they
happen."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from syncscope.timeline.calls import COMMANDS
from syncscope.timeline.intervals import Bools, Ints
from syncscope.timeline.pins import ENTRY, OPS
from syncscope.timeline.places import Place
from syncscope.timeline.row_groups import number_groups
from syncscope.timeline.tables import Calls, Waits
from syncscope.trace.sets import different

if TYPE_CHECKING:
    from syncscope.timeline.timeline import Timeline

UNCACHED_CALLS, UNCACHED_SHARE = 50, 0.25
"""The caching allocator is off if a trace has at least so many calls for memory of the device, one for so large a share
of what it gives the device, and gives half of that memory back."""


def is_uncached(waits: Waits, calls: Calls) -> bool:
    """Whether every tensor is allocated and freed by the driver (``PYTORCH_NO_CUDA_MEMORY_CACHING``)."""
    commands = int(calls.do(COMMANDS).sum())
    asked, freed = (int((calls.role[waits.call] == role).sum()) for role in ("device-alloc", "device-free"))
    return asked >= max(UNCACHED_CALLS, UNCACHED_SHARE * commands) and 2 * freed >= asked


def in_empty_cache(waits: Waits, places: tuple[Place, ...]) -> Bools:
    """Which waits (n,) are inside ``torch.cuda.empty_cache()``."""
    return np.array([is_empty_cache(places[place]) for place in waits.place], dtype=bool)


def is_empty_cache(place: Place) -> bool:
    """Whether the place is a call of ``torch.cuda.empty_cache()``."""
    at = place.at
    inside = at is not None and at.function.endswith("empty_cache") and at.file.endswith("torch/cuda/memory.py")
    return inside or place.entry.endswith("empty_cache")


def given_back_outside_ops(waits: Waits, timeline: Timeline) -> Bools:
    """Which waits (n,) give memory back where the trace has ops, and none around them: the allocator does that inside
    of the op that lacks memory, so the program asked for it. Work that is done once, as the capture of a graph, gives
    memory back too."""
    free = (waits.kind == "free") & (waits.op < 0) & np.isin(waits.tid, timeline.ops.tid)
    found: Bools = free & (timeline.warming_up(waits.ts, waits.end, waits.tid) == "")
    return found


def asks_for_memory(waits: Waits, places: tuple[Place, ...]) -> Bools:
    """Which waits (n,) are calls for memory that no pinning of a tensor makes."""
    pins = [
        places[place].entry == ENTRY or not set(OPS).isdisjoint(ops)
        for place, ops in zip(waits.place, waits.ops, strict=True)
    ]
    asks: Bools = np.isin(waits.kind, ["alloc", "free"]) & ~np.array(pins, dtype=bool)
    return asks


def find_owners(emptied: Bools) -> Ints:
    """For each call (n,) the row of the call that is the reason for it, −1 for none. ``emptied`` (n,) says which calls
    emptied the cache: the last of them before a call is its reason, or the first where a trace begins with the call."""
    rows = np.flatnonzero(emptied)
    if not len(rows):
        return np.full(len(emptied), -1, dtype=np.int64)
    last = np.searchsorted(rows, np.arange(len(emptied)), side="right") - 1
    return rows[np.maximum(last, 0)]


def number_runs(waits: Waits, calls: Calls) -> Ints:
    """Number the waits (n,): those of a thread that gave the device nothing in between share a number."""
    commands = calls.do(COMMANDS)
    before = np.zeros(len(waits), dtype=np.int64)
    for thread in different(waits.tid):
        own = waits.tid == thread
        before[own] = np.searchsorted(calls.ts[commands & (calls.tid == thread)], waits.ts[own])
    return number_groups(waits.tid, before)
