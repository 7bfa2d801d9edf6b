"""CUDA graphs that a trace without rows of `torch.compile`'s own shows to be recorded again and again."""

from __future__ import annotations

import numpy as np

from syncscope.timeline import Timeline
from syncscope.timeline.intervals import Union
from syncscope.timeline.warm_up import BEGINS_CAPTURE

LEAST_TIMES = 2
"""Calls of the program that record graphs, from which on it is no more the first one alone."""


def count_recordings(timeline: Timeline) -> int:
    """How many calls of the program, outermost ops, record CUDA graphs, where these take half or more of the idle time
    that is the host's work; else 0. What is before the recording in such a call is part of it: PyTorch waits, collects
    garbage, and runs the work once without a graph."""
    calls, ops, bubbles = timeline.calls, timeline.ops, timeline.bubbles
    begins = [BEGINS_CAPTURE.search(name) is not None for name in dict.fromkeys(calls.name)]
    names = {name for name, found in zip(dict.fromkeys(calls.name), begins, strict=True) if found}
    rows = np.flatnonzero(np.isin(calls.name, list(names)))
    around = ops.nesting.innermost(calls.tid[rows], calls.ts[rows], calls.end[rows])
    outer = np.array(sorted({[*ops.nesting.chain(row)][-1] for row in around[around >= 0].tolist()}), dtype=np.int64)
    if len(outer) < LEAST_TIMES:
        return 0
    work = bubbles.due_to("host work")
    inside = Union(ops.ts[outer], ops.end[outer]).within(bubbles.ts, bubbles.end)
    return len(outer) if 2 * np.minimum(work, inside).sum() >= work.sum() > 0 else 0
