"""The waits by which DistributedDataParallel times itself in its first ten steps, and then in every hundredth.

At the beginning of a forward pass its logger asks how long parts of the step before took: up to four times it waits for
two events and asks for the time between them (torch/csrc/distributed/c10d/logger.cpp and reducer_cuda.cpp).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import numpy as np

from syncscope.patterns import compile_later
from syncscope.timeline.intervals import Bools, Ints
from syncscope.timeline.tables import Calls, Marks, Ops
from syncscope.trace.sets import different

FORWARD: Final = "DistributedDataParallel.forward"
"""The annotation, or op, that DistributedDataParallel puts around its forward pass, where the host's are recorded."""

ASKS: Final = compile_later(r"(?:cuda|hip)Event(?:ElapsedTime|Query)")
"""What comes between the waits."""

WAITS: Final = 8
"""Waits in a row where all four parts are timed."""


def find_timings(calls: Calls, ops: Ops, marks: Marks, recorded: Marks | None) -> Iterator[tuple[int, int, int]]:
    """Begin, end and thread of each time that DistributedDataParallel asks. ``marks`` are the trace's annotations,
    ``recorded`` the calls that the collector recorded, of which are all that the program asks for itself; ``None`` in
    traces of others."""
    waiting = calls.do(["event-sync"])
    asking = calls.named(ASKS.match)
    for tid in different(calls.tid[waiting]):
        rows = np.flatnonzero((calls.tid == tid) & ~asking)
        for run in _runs(rows, waiting[rows]):
            if len(run) % 2:
                continue
            begin, end = int(calls.ts[run[0]]), int(calls.end[run[-1]])
            if _in_forward(ops, marks, begin, end, int(tid)) or _is_unasked(run, recorded, begin, end, int(tid)):
                yield begin, end, int(tid)


def _runs(rows: Ints, waiting: Bools) -> Iterator[Ints]:
    """The ``rows`` (n,) of each run of ``waiting`` ones."""
    edges = np.flatnonzero(np.diff(np.concatenate([[False], waiting, [False]]).astype(np.int8)))
    for first, behind in edges.reshape(-1, 2).tolist():
        yield rows[first:behind]


def _in_forward(ops: Ops, marks: Marks, begin: int, end: int, tid: int) -> bool:
    """Whether a forward pass of DistributedDataParallel is the innermost thing around."""
    at = np.array([tid]), np.array([begin]), np.array([end])
    op, mark = int(ops.nesting.innermost(*at)[0]), int(marks.nesting.innermost(*at)[0])
    if op >= 0:
        return bool(ops.name[op] == FORWARD)
    return mark >= 0 and bool(marks.name[mark] == FORWARD)


def _is_unasked(run: Ints, recorded: Marks | None, begin: int, end: int, tid: int) -> bool:
    """Whether it is a whole question in a recording of ours, of which the program called nothing."""
    if recorded is None or len(run) != WAITS:
        return False
    mine = recorded.tid == tid
    asked = (recorded.ts[mine] < end) & (recorded.end[mine] > begin)
    return not asked.any()
