"""What a copy needs to run beside compute, and what each copy lacks."""

from __future__ import annotations

from itertools import product

import numpy as np

from syncscope.timeline.copies import waited_for_engine
from syncscope.timeline.intervals import Bools, Ints
from syncscope.timeline.overlap import is_compute
from syncscope.timeline.tables import Activities, Objects
from syncscope.timeline.timeline import Timeline
from syncscope.timeline.waits import is_wait
from syncscope.trace.sets import different

PAGEABLE, HOST, STREAM = "pageable memory", "host waits", "same stream"
ENGINE, WAIT, NOTHING = "no free engine", "host in a wait", "nothing beside"
REQUIREMENTS = (PAGEABLE, HOST, STREAM, ENGINE, WAIT, NOTHING)
"""What copies lack, in the order in which they need it."""


def first_lacking(timeline: Timeline, blockers: Ints) -> Objects:
    """For each of ``copies`` the first of ``REQUIREMENTS`` that it lacks. ``blockers`` is the result of
    ``blocking_waits``."""
    copies = timeline.copies
    lacks = np.full(len(copies), NOTHING, dtype=object)
    lacks[blockers >= 0] = WAIT
    lacks[waited_for_engine(copies, timeline.trace.devices)] = ENGINE
    lacks[copies.with_compute] = STREAM
    lacks[copies.wait >= 0] = HOST
    lacks[copies.memory == "pageable"] = PAGEABLE
    return lacks


def blocking_waits(timeline: Timeline) -> Ints:
    """For each of ``copies`` the row in ``waits`` of the wait that the host was in for half of the copy or more before
    it launched the next kernel that computes on the copy's device, −1 for none."""
    copies, calls = timeline.copies, timeline.calls
    blocker = np.full(len(copies), -1, dtype=np.int64)
    activities, every = timeline.activities, timeline.waits
    kernels = activities.take(is_compute(activities) & (activities.launch >= 0))
    waits = every.take(is_wait(every.kind))
    if not len(kernels) or not len(waits):
        return blocker
    # Waits of one thread follow one another, so the one under way in the middle of a copy has the most of it.
    for thread, device in product(different(waits.tid), different(copies.device)):
        mine, here = np.flatnonzero(waits.tid == thread), np.flatnonzero(copies.device == device)
        ran = kernels.take(kernels.device == device)
        launched = np.sort(calls.ts[ran.launch[calls.tid[ran.launch] == thread]])
        ts, end = copies.ts[here], copies.end[here]
        wait = mine[np.maximum(np.searchsorted(waits.begin[mine], (ts + end) // 2, side="right") - 1, 0)]
        shared = np.minimum(waits.end[wait], end) - np.maximum(waits.begin[wait], ts)
        # Something to compute is launched at last, and nothing that was launched before the wait is still held back.
        after = np.searchsorted(launched, waits.end[wait], side="left") < len(launched)
        held = (2 * shared >= end - ts) & after
        held &= ~_still_pending(timeline, ran, waits.begin[wait], end)
        blocker[here[held]] = waits.row[wait[held]]
    return blocker


def _still_pending(timeline: Timeline, kernels: Activities, before: Ints, until: Ints) -> Bools:
    """For each pair of times, whether any of ``kernels`` launched before the first begins only
    at or after the second."""
    if not len(kernels):
        return np.zeros(len(before), dtype=bool)
    launched = timeline.calls.ts[kernels.launch]
    order = np.argsort(launched, kind="stable")
    latest = np.maximum.accumulate(kernels.ts[order])
    slot = np.searchsorted(launched[order], before, side="left") - 1
    pending: Bools = (slot >= 0) & (latest[np.maximum(slot, 0)] >= until)
    return pending
