"""Match PyTorch's warnings with waits, and recorded calls with what ran inside them.

PyTorch keeps the warnings of a call into C++ until that call returns to Python, then raises them in order. So k
warnings raised together belong to the last k waits of the thread that lack one. A wait that never gets a warning
(custom operators, TorchScript) stays in the queue, and no later warning takes it.
"""

from __future__ import annotations

from collections.abc import Iterator

import msgspec
import numpy as np

from syncscope.timeline.intervals import Bools, Ints
from syncscope.timeline.tables import Marks

WARNING_SLACK = 10_000
"""Nanoseconds by which a warning may seem to come before its wait ends, since two clocks are compared. The next wait of
the same thread ends later than that: Python and a launch lie in between."""

SAME_RETURN = 2_000_000
"""The most nanoseconds between two warnings of one return; they are raised one after the other."""

CALL_SLACK = 20_000
"""Nanoseconds by which what ran inside a call may seem to stick out of it."""


class Warned(msgspec.Struct, frozen=True):
    """One warning: when and on which thread it was raised, from which stack, and whether ``backward`` raised it."""

    event: int
    time: int
    tid: int
    stack: int
    backward: bool


class _Queue(msgspec.Struct):
    """The waits of one thread; ``pending`` are those that have ended and lack a warning, oldest first."""

    rows: list[int]
    ends: Ints
    taken: int = 0
    pending: list[int] = []

    def advance(self, time: int) -> None:
        """Make the waits that ended by ``time`` pending."""
        upto = max(self.taken, int(np.searchsorted(self.ends, time + WARNING_SLACK, side="right")))
        self.pending += self.rows[self.taken : upto]
        self.taken = upto

    def ended_by(self, time: int) -> bool:
        """Whether another wait ended by ``time``."""
        return self.taken < len(self.rows) and int(self.ends[self.taken]) <= time + WARNING_SLACK


def match_warnings(warned: list[Warned], ts: Ints, end: Ints, tid: Ints, in_backward: Bools) -> Ints:
    """Find the warning of each wait that PyTorch warns of.

    ``ts``, ``end`` and ``tid`` (n,) are those of the waits. ``in_backward`` (n,) says which may have run in C++
    backward on a thread of autograd. Returns the ``event`` of each one's warning (n,), −1 for none.
    """
    event = np.full(len(ts), -1, dtype=np.int64)
    own = [warning for warning in warned if not warning.backward]
    for thread in sorted({warning.tid for warning in own}):
        rows = np.flatnonzero(tid == thread)
        rows = rows[np.argsort(end[rows], kind="stable")]
        queue = _Queue(rows.tolist(), end[rows])
        for group in _group_returns([w for w in own if w.tid == thread], queue):
            _assign(event, queue.pending, group)
    _match_backward(event, [w for w in warned if w.backward], ts, end, tid, in_backward)
    return event


def _group_returns(warned: list[Warned], queue: _Queue) -> Iterator[list[Warned]]:
    """Group the warnings of one thread by the return that raised them: same stack, and no wait ended in between."""
    group: list[Warned] = []
    for warning in sorted(warned, key=lambda w: w.time):
        if group and _together(group[-1], warning) and not queue.ended_by(warning.time):
            group.append(warning)
            continue
        if group:
            yield group
        queue.advance(warning.time)
        group = [warning]
    if group:
        yield group


def _assign(event: Ints, pending: list[int], group: list[Warned]) -> None:
    """Give the last of the waits that are ``pending`` the warnings of one return."""
    last = pending[-len(group) :]
    del pending[len(pending) - len(last) :]
    for row, warning in zip(last, group[len(group) - len(last) :], strict=True):
        event[row] = warning.event


def _match_backward(event: Ints, warned: list[Warned], ts: Ints, end: Ints, tid: Ints, in_backward: Bools) -> None:
    """Give the warnings that ``backward`` replays at its end to the last waits of the threads it used."""
    previous: dict[int, int] = {}
    groups: list[list[Warned]] = []
    for warning in sorted(warned, key=lambda w: (w.tid, w.time)):
        last = groups[-1][-1] if groups else None
        if last and _together(last, warning) and not _any_between(end, last.time, warning.time):
            groups[-1].append(warning)
        else:
            groups.append([warning])
    for group in sorted(groups, key=lambda g: g[0].time):
        caller, time = group[0].tid, group[0].time
        free = (event < 0) & (end <= time + WARNING_SLACK) & (ts >= previous.get(caller, ts.min(initial=0)))
        rows = np.flatnonzero(free & ((tid == caller) | in_backward))
        _assign(event, rows[np.argsort(end[rows], kind="stable")].tolist(), group)
        previous[caller] = group[-1].time


def _together(last: Warned, warning: Warned) -> bool:
    return (last.tid, last.stack) == (warning.tid, warning.stack) and warning.time - last.time <= SAME_RETURN


def _any_between(end: Ints, first: int, last: int) -> bool:
    return bool(((end > first + WARNING_SLACK) & (end <= last + WARNING_SLACK)).any())


def match_calls(calls: Marks, ts: Ints, end: Ints, tid: Ints) -> Ints:
    """For each interval (n,), the innermost row of ``calls`` around it on its thread, −1 for none.

    ``calls`` are in order of ``ts``, the longest first among equals.
    """
    around = calls.nesting.innermost(tid, ts, end)
    # The clocks may disagree about what barely fits: then the call that covers the greater part of it.
    for thread in calls.nesting.threads():
        rows = calls.nesting.rows(thread)
        begins, ends = calls.ts[rows], calls.end[rows]
        rest = np.flatnonzero((around < 0) & (tid == thread))
        slot = np.searchsorted(begins, ts[rest] + CALL_SLACK, side="right") - 1
        call = np.maximum(slot, 0)
        shared = np.minimum(ends[call] + CALL_SLACK, end[rest]) - np.maximum(begins[call] - CALL_SLACK, ts[rest])
        inside = np.minimum(ends[call], end[rest]) - np.maximum(begins[call], ts[rest])
        length = end[rest] - ts[rest]
        around[rest] = np.where((slot >= 0) & (shared >= length) & (2 * inside >= length), rows[call], -1)
    return around
