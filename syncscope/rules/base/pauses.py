"""What is said of a host that pauses, or works at length: besides warm-up, and where one step of several does so."""

from __future__ import annotations

import numpy as np

from syncscope.rules.base.idle_places import find_idle_place
from syncscope.schema.numbers import milliseconds
from syncscope.timeline import Timeline
from syncscope.timeline.bubbles import SLOW_PACE
from syncscope.timeline.intervals import Union
from syncscope.timeline.pauses import MAY_PAUSE, SEVERAL
from syncscope.timeline.pauses import ONCE as PAUSE
from syncscope.timeline.steps import step_of

ONE_PAUSE = 0.5
"""Of fewer steps than ``SEVERAL`` nothing tells whether a pause comes back that is this share of all their time."""


def paused_ms(timeline: Timeline) -> float:
    """Milliseconds a step in which the device is idle in the pauses of a single step."""
    overlap = timeline.overlap
    return overlap.idle_by_cause.get(PAUSE, 0.0) if overlap is not None else 0.0


def tell_of_single_pause(timeline: Timeline) -> str:
    """What is said of the pauses of a single step: ``426 ms once, in step 1 of 5``, and where the host is."""
    rows = np.flatnonzero(timeline.bubbles.due_to(PAUSE))
    number = int(step_of(timeline.steps, np.minimum(timeline.bubbles.end[rows], timeline.steps.end.max()) - 1)[0])
    whole, steps = milliseconds(paused_ms(timeline) * len(timeline.steps)), len(timeline.steps)
    place = find_idle_place(timeline, PAUSE)
    where = f" ({place.in_words()})" if place is not None and place.place.at is not None else ""
    return f"{whole} once, in step {number + 1} of the {steps} recorded{where}"


def tell_of_one_pause(timeline: Timeline) -> str:
    """The end of a fix for a device that is idle in pauses of a single step, or in one for most of the time of steps
    that are too few to tell whether each has it; else nothing."""
    bubbles, steps, span = timeline.bubbles, len(timeline.steps), timeline.span
    if paused_ms(timeline):
        told = tell_of_single_pause(timeline)
        return f" It is also idle for {told}: no part of each step, unless later ones show that it comes again."
    longest = int(np.sum([bubbles.due_to(cause) for cause in MAY_PAUSE], axis=0).max(initial=0))
    if not steps or steps >= SEVERAL or span is None or longest < ONE_PAUSE * (span[1] - span[0]):
        return ""
    recorded = "the one step recorded" if steps == 1 else f"the {steps} steps recorded"
    return (
        f" One pause takes {milliseconds(longest * 1e-6)} of {recorded}, though: record {SEVERAL} or more to see "
        "whether it comes again."
    )


def tell_of_pauses(timeline: Timeline, once: str, least_share: float) -> str:
    """What to say of a host that sleeps, or waits for something else than the device, or works at length in a known
    function outside of any op, for ``least_share`` of the time without the cause ``once``; else nothing."""
    overlap = timeline.overlap
    assert overlap is not None
    least_ms = least_share * (overlap.idle_ms - overlap.idle_by_cause.get(once, 0.0) + overlap.device_busy_ms)
    for cause, does, ms in (
        ("host idle", "sleeps, or waits for something else", overlap.idle_by_cause.get("host idle", 0.0)),
        ("host work", "works", _outside_ops_ms(timeline)),
    ):
        place = find_idle_place(timeline, cause) if ms >= least_ms else None
        if ms >= least_ms and (cause == "host idle" or (place is not None and place.place.at is not None)):
            where = f" in {place.in_words()}" if place else ""
            return f"; for {milliseconds(ms)} of the rest it is idle while the host {does}{where}"
    return ""


def _outside_ops_ms(timeline: Timeline) -> float:
    """Milliseconds of host work in long gaps of which ops take less than half, a step."""
    work = timeline.bubbles.due_to("host work")
    at_length = timeline.bubbles.take(work >= SLOW_PACE)
    in_ops = Union(timeline.ops.ts, timeline.ops.end).within(at_length.ts, at_length.end)
    outside = work[work >= SLOW_PACE][2 * in_ops < at_length.dur]
    return float(outside.sum()) * 1e-6 / max(len(timeline.steps), 1)
