"""The numbers of runtime calls are witnesses of calls that are not there.

Correlation ids count all calls of the process, of which a profiler records some. So a few are missing all the time, and
many where a library is loaded. Where far more are missing at once than anywhere else, while ops ran that launch
something elsewhere and launch nothing there, a part of the recording was lost, the device's rows with it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from syncscope.timeline.disagreement import Disagreement, disagree
from syncscope.timeline.warm_up import are_warming_up

if TYPE_CHECKING:
    from syncscope.timeline.timeline import Timeline

LEAST_MISSING, TIMES_MORE = 20, 3
"""Calls that are missing at once, at least, and how many times more than at any other place. In 554 whole traces of
others no more than 1.6 times as many were, where three kinds of ops or more that launch elsewhere launched nothing; in
one without a fifth of its rows, nine times as many."""

LEAST_KINDS, LEAST_OPS = 3, 4
"""Kinds of such ops, and how many, at least: some are now and then done on the host."""

MOSTLY = 0.8
"""Share of its other occurrences in which an op that launches does so."""


def about_numbers(timeline: Timeline) -> tuple[Disagreement, ...]:
    """Calls that are missing all at once."""
    ops, rows = timeline.ops, timeline.trace.rows["runtime"]
    known = rows["correlation"] >= 0
    ts, number = rows["ts"][known], rows["correlation"][known]
    if not len(ops) or len(number) < 2:
        return ()
    order = np.argsort(ts, kind="stable")
    ts, number = ts[order], number[order]
    # Threads make calls side by side: what a number lacks may come a little later, or have come before.
    least_after = np.minimum.accumulate(number[::-1])[::-1]
    missing = least_after[1:] - np.maximum.accumulate(number)[:-1] - 1
    gap = int(missing.argmax())
    many, others = int(missing[gap]), int(np.delete(missing, gap).max(initial=0))
    if many < max(LEAST_MISSING, TIMES_MORE * others):
        return ()
    launching = timeline.launching_ops
    here = (ops.ts > ts[gap]) & (ops.ts < ts[gap + 1]) & ~launching
    here &= ~are_warming_up(timeline.warm_ups, ops.ts, ops.end, ops.tid)
    texts = timeline.trace.rows["ops"].texts["name"]
    name = texts.codes.astype(np.int64)
    launched, silent, times = (
        np.bincount(name[which], minlength=len(texts.names)) for which in (launching, here, slice(None))
    )
    surely = (silent > 0) & (launched > 0) & (launched >= MOSTLY * (times - silent))
    if surely.sum() < LEAST_KINDS or silent[surely].sum() < LEAST_OPS:
        return ()
    return disagree(
        "runtime", many, "",
        "{} calls in a row are not in the trace, by their numbers, while ops ran that launch something elsewhere",
    )  # fmt: skip
