"""Whether the host is on its way through PyTorch's ops while the device waits for it."""

from __future__ import annotations

import numpy as np

from syncscope.timeline import Timeline
from syncscope.timeline.intervals import Union

LONGEST = 500_000
"""Nanoseconds that an op takes besides those inside of it, at most. One that takes longer computes on the host, waits
for something that no row shows, or runs code of the program's own."""


def is_in_short_ops(timeline: Timeline, cause: str) -> bool:
    """Whether more than half of the idle time that is due to a cause lies in gaps most of which ops take, and none of
    them long."""
    bubbles, ops = timeline.bubbles, timeline.ops
    due = bubbles.due_to(cause)
    if not len(ops) or not due.any():
        return False
    dur, parent = ops.end - ops.ts, ops.nesting.parent
    inside = np.bincount(parent[parent >= 0], weights=dur[parent >= 0], minlength=len(ops))
    long = dur - inside > LONGEST
    covered = Union(ops.ts, ops.end).within(bubbles.ts, bubbles.end)
    held = Union(ops.ts[long], ops.end[long]).within(bubbles.ts, bubbles.end)
    short = (2 * covered > bubbles.end - bubbles.ts) & (held == 0)
    return 2 * int(due[short].sum()) > int(due.sum())
