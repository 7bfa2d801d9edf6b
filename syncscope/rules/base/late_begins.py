"""A device that begins late what was launched in time, as where another process has it for a while."""

from __future__ import annotations

import numpy as np

from syncscope.schema.numbers import milliseconds
from syncscope.timeline import Timeline
from syncscope.timeline.intervals import Ints
from syncscope.trace.sets import different

LATE = "late"
"""Stands for a device that does so for most of the idle time that nothing else explains."""

LEAST_TIMES = 5
"""How often it must be: once may be a kernel whose code is loaded, or a pause of the profiler."""

LEAST_SHARE = 0.1
"""And for how much of the time."""

MOST = 0.5
"""For how much of what nothing explains, to be what is said of that."""


SLICE_NS, ALIKE = 1_000_000, 0.1
"""Processes that share a device take turns of a ms or more that are as long as each other: the middle half of them is
within this share of the median. What waits for another stream or rank waits now for long and now for a little."""


def runs_on_one_stream(timeline: Timeline) -> bool:
    """Whether one stream ran on the device, and no collective, so that nothing there waits for something else."""
    return len(different(timeline.on_device.stream)) == 1 and not len(timeline.collectives)


def find_late_ms(timeline: Timeline) -> float:
    """Milliseconds a step (in all, without steps) for which the device is late, 0 where that is seldom or little, or
    may be the wait for another stream or rank."""
    late, span = timeline.bubbles.late, timeline.span
    if span is None or not (runs_on_one_stream(timeline) or _are_turns(late[late > 0])):
        return 0.0
    if (late > 0).sum() < LEAST_TIMES or late.sum() < LEAST_SHARE * (span[1] - span[0]):
        return 0.0
    return float(late.sum()) * 1e-6 / max(len(timeline.steps), 1)


def _are_turns(late: Ints) -> bool:
    """Whether the device is late for as long each time, as where processes have it in turn."""
    if len(late) < LEAST_TIMES:
        return False
    low, middle, high = np.percentile(late, (25, 50, 75)).tolist()
    return bool(middle >= SLICE_NS and high - low <= ALIKE * middle)


def is_mostly_late(timeline: Timeline) -> bool:
    """Whether that is most of the idle time that nothing else explains."""
    unknown = timeline.overlap.idle_by_cause.get("unknown", 0.0) if timeline.overlap is not None else 0.0
    return unknown > 0 and find_late_ms(timeline) >= MOST * unknown


def tell_late(timeline: Timeline) -> str:
    """The end of a message that says so; empty where it is not so."""
    late_ms = find_late_ms(timeline)
    if not late_ms or timeline.processes_on_device:
        return ""
    return (
        f"; for {milliseconds(late_ms)} it is late to begin what was launched in time, as when another process uses it"
    )
