"""Whether idle time comes before kernels that a trace launches for the first time, so that it may be done once."""

from __future__ import annotations

import numpy as np

from syncscope.timeline import Timeline
from syncscope.timeline.bubbles import OWN_OP
from syncscope.timeline.first_launches import first_of_each_name
from syncscope.timeline.intervals import Bools, Ints

LONG = 500_000
"""Nanoseconds of a gap, at least, in which something is loaded, compiled or chosen."""

AS_LONG = 0.5
"""A gap before a later launch of the kernel that is this share as long shows that it comes back."""


def is_before_first_launches(timeline: Timeline, cause: str) -> bool:
    """Whether more than half of the idle time that is due to a cause lies in long gaps, each of which ends with the
    trace's first launch of a kernel, before which the device never again waits about as long for that cause."""
    due = timeline.bubbles.due_to(cause)
    return 2 * int(due[_end_with_first(timeline, due)].sum()) > int(due.sum())


def is_in_ops_that_launch_first(timeline: Timeline, cause: str) -> bool:
    """The same where the host is inside of the op of PyTorch's own that makes the first launch, for most of each gap:
    then no code of the program runs."""
    bubbles, ops = timeline.bubbles, timeline.ops
    due = bubbles.due_to(cause)
    rows = np.flatnonzero(_end_with_first(timeline, due))
    if not len(rows) or not len(ops):
        return False
    op = ops.around(timeline.calls)[bubbles.launch[rows]]
    own = ops.named(OWN_OP.match)
    begin = bubbles.end[rows].copy()
    while (inside := op >= 0).any():
        mine = inside & own[op]
        begin[mine] = np.minimum(begin[mine], ops.ts[op[mine]])
        op = np.where(inside, ops.nesting.parent[op], -1)
    covered = bubbles.end[rows] - np.maximum(begin, bubbles.ts[rows])
    return 2 * int(due[rows][2 * covered > due[rows]].sum()) > int(due.sum())


def _end_with_first(timeline: Timeline, due: Ints) -> Bools:
    """Which bubbles (n,) end with the first launch of a kernel, and are due for long, ``due`` ns, to what no later
    launch of it comes after. Of the trace's first kernel that says nothing."""
    activities, bubbles = timeline.on_device, timeline.bubbles
    kernel = np.full(len(timeline.calls) + 1, -1, dtype=np.int64)
    kernel[activities.launch] = activities.name_places
    kernel[-1] = -1  # of what has no launch
    ends_with = kernel[bubbles.launch]
    first = np.isin(bubbles.launch, activities.launch[first_of_each_name(activities)])
    longest = np.zeros(int(kernel.max()) + 2, dtype=np.int64)
    np.maximum.at(longest, ends_with[~first], due[~first])
    once: Bools = first & (due >= LONG) & (longest[ends_with] < AS_LONG * due) & (bubbles.ts >= activities.end.min())
    return once
