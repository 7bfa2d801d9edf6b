"""What is said of a host that pauses, or works at length: besides warm-up, and where one step of several does so."""

from __future__ import annotations

from syncscope.rules.base.idle_places import find_idle_place
from syncscope.schema.numbers import milliseconds
from syncscope.timeline import Timeline
from syncscope.timeline.bubbles import SLOW_PACE
from syncscope.timeline.intervals import Union

SEVERAL, ONE_PAUSE = 3, 0.5
"""Of so many steps a pause that is this share of all their idle time is no part of each of them."""


def tell_of_one_pause(timeline: Timeline, idle_ms: float, once: str) -> str:
    """The end of a fix for a device that is idle for ``idle_ms`` a step without the cause ``once``, mostly in one pause
    of one step; else nothing."""
    bubbles, steps = timeline.bubbles, len(timeline.steps)
    longest_ms = float((bubbles.dur - bubbles.due_to(once)).max()) * 1e-6 if len(bubbles) else 0.0
    if steps < SEVERAL or longest_ms < ONE_PAUSE * idle_ms * steps:
        return ""
    of_all = f"{milliseconds(longest_ms)} of the {milliseconds(idle_ms * steps)} in {steps} steps"
    return f" One pause takes {of_all}, though: record others to see whether it comes again."


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
