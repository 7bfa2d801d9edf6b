"""Whether idle time comes before kernels that a trace launches for the first time, so that it may be done once."""

from __future__ import annotations

import numpy as np

from syncscope.timeline import Timeline
from syncscope.timeline.first_launches import first_of_each_name
from syncscope.timeline.row_groups import number_groups

LONG = 500_000
"""Nanoseconds of a gap, at least, in which something is loaded, compiled or chosen."""

AS_LONG = 0.5
"""A gap before a later launch of the kernel that is this share as long shows that it comes back."""


def is_before_first_launches(timeline: Timeline, cause: str) -> bool:
    """Whether more than half of the idle time that is due to a cause lies in long gaps, each of which ends with the
    trace's first launch of a kernel, before which the device never again waits about as long for that cause."""
    activities, bubbles = timeline.on_device, timeline.bubbles
    due = np.where(bubbles.launch >= 0, bubbles.due_to(cause), 0)
    kernel = np.full(len(timeline.calls) + 1, -1, dtype=np.int64)
    kernel[activities.launch] = number_groups(activities.name)
    kernel[-1] = -1  # of what has no launch
    ends_with = kernel[bubbles.launch]
    first = np.isin(bubbles.launch, activities.launch[first_of_each_name(activities)])
    longest = np.zeros(int(kernel.max()) + 2, dtype=np.int64)
    np.maximum.at(longest, ends_with[~first], due[~first])
    once = first & (due >= LONG) & (longest[ends_with] < AS_LONG * due)
    return 2 * int(due[once].sum()) > int(bubbles.due_to(cause).sum())
