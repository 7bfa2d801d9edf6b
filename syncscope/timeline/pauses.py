"""Pauses of a device in one step of several, at places where the others have none: no part of each step.

A pause may come again after more steps than were recorded, so it is no warm-up. What is done about each step does not
make it shorter, though.
"""

from __future__ import annotations

import numpy as np

from syncscope.timeline.bubbles import SLOW_PACE
from syncscope.timeline.intervals import Bools, Ints
from syncscope.timeline.row_groups import number_texts
from syncscope.timeline.steps import step_of
from syncscope.timeline.tables import CAUSES, Activities, Bubbles, Steps

ONCE = "single pause"
"""The cause of idle time of such pauses."""

MAY_PAUSE = (
    "host collective", "host idle", "launching", "host work", "launch latency", "queued on device", "unknown",
)  # fmt: skip
"""Causes that a pause may have. The others are in findings of their own, and workers that load data fall behind now and
then, at each so many steps."""

SEVERAL = 3
"""Steps that tell what is no part of each of them."""

AS_LONG = 0.2
"""In another step a gap at the same place that is this share of a pause, or longer, is the same in little."""

MORE = 0.5
"""The step with pauses has more idle time than any other, by this share of the pauses at least: else the others pause
as long at other places."""

LEAST_SHARE = 0.1
"""The pauses are this share of all idle time at least."""


def set_apart_pauses(bubbles: Bubbles, steps: Steps, activities: Activities) -> Bubbles:
    """The gaps between ``activities``, of which those of a single step that are long, and that no other step has in
    front of the same kernels, have the cause ``ONCE``."""
    own = [CAUSES.index(cause) for cause in MAY_PAUSE]
    may = bubbles.by_cause[:, own].sum(axis=1)
    paused = _find_pauses(bubbles, may, steps, activities)
    if not paused.any():
        return bubbles
    by_cause = bubbles.by_cause.copy()
    for column in own:
        by_cause[paused, column] = 0
    by_cause[paused, CAUSES.index(ONCE)] = may[paused]
    cause = np.array(CAUSES, dtype=object)[np.argmax(by_cause, axis=1)]
    return bubbles.replace(by_cause=by_cause, cause=cause)


def _find_pauses(bubbles: Bubbles, may: Ints, steps: Steps, activities: Activities) -> Bools:
    """Which gaps are such pauses; ``may`` is the part (n,) of each that can be one, ns."""
    none = np.zeros(len(bubbles), dtype=bool)
    if len(steps) < SEVERAL or not (may >= SLOW_PACE).any():
        return none
    step = step_of(steps, np.minimum(bubbles.end, steps.end.max()) - 1)
    inside, idle_ns = step >= 0, bubbles.dur - bubbles.due_to("warm-up")
    idle = np.bincount(step[inside], idle_ns[inside], len(steps))
    odd = int(idle.argmax())
    before = np.searchsorted(activities.ts, bubbles.end, side="left")
    kernel, names = number_texts(np.append(activities.name, ""))
    kernel = kernel[np.minimum(before, len(activities))]
    others = np.zeros(len(names), dtype=np.int64)
    elsewhere = inside & (step != odd)
    np.maximum.at(others, kernel[elsewhere], idle_ns[elsewhere])
    paused: Bools = (step == odd) & (may >= SLOW_PACE) & (others[kernel] < AS_LONG * may)
    whole = int(may[paused].sum())
    alone = idle[odd] - np.delete(idle, odd).max() >= MORE * whole
    return paused if alone and whole >= LEAST_SHARE * int(bubbles.dur.sum()) else none
