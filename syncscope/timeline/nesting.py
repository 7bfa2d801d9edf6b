"""Find what encloses what on a host thread, from begin and end times alone: chains of ops, and Python stacks."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property

import numpy as np

from syncscope.timeline.intervals import Ints

TOLERANCE = 1_000
"""Nanoseconds by which a call may stick out of what encloses it: rows of different clocks are rounded apart."""


class Nesting:
    """Which rows of a host table enclose which, thread by thread.

    A row is named by its position in the table, −1 is none.
    """

    def __init__(self, ts: Ints, end: Ints, tid: Ints) -> None:
        """``ts``, ``end`` and ``tid`` (n,) in order of ``ts``, the longest first among equals."""
        self._ts, self._end = ts, end
        self.parent: Ints = np.full(len(ts), -1, dtype=np.int64)
        """For each row (n,) the row right around it."""
        self._threads: dict[int, Ints] = {}
        for thread in np.unique(tid):
            rows = np.flatnonzero(tid == thread)
            self._threads[int(thread)] = rows
            self.parent[rows] = self._parents(rows)

    def threads(self) -> frozenset[int]:
        """The threads that have rows."""
        return frozenset(self._threads)

    def rows(self, tid: int) -> Ints:
        """The rows of a thread, in order of time."""
        return self._threads.get(tid, np.empty(0, dtype=np.int64))

    def roots(self, tid: int) -> Ints:
        """The outermost rows of a thread, in order of time."""
        rows = self.rows(tid)
        return rows[self.parent[rows] < 0]

    def _parents(self, rows: Ints) -> Ints:
        # Depth is begins minus ends seen so far. The parent of a row at depth d is the last row at depth d − 1
        # before it, so one search per depth finds all parents.
        ts = self._ts[rows]
        end = np.maximum(self._end[rows], ts + 1)
        closed = np.searchsorted(np.sort(end), ts, side="right")
        depth = np.arange(len(rows)) - closed
        parents = np.full(len(rows), -1, dtype=np.int64)
        above = np.flatnonzero(depth == 0)
        for level in range(1, int(depth.max(initial=0)) + 1):
            here = np.flatnonzero(depth == level)
            parents[here] = above[np.searchsorted(above, here) - 1] if len(above) else -1
            above = here
        return np.where(parents >= 0, rows[parents], -1)

    def innermost(self, tid: Ints, ts: Ints, end: Ints) -> Ints:
        """For each interval (n,), the innermost row of its thread that encloses it, −1 where none does."""
        enclosing = np.full(len(ts), -1, dtype=np.int64)
        if not len(self._ts):
            return enclosing
        for thread, rows in self._threads.items():
            inside = np.flatnonzero(tid == thread)
            if len(inside):
                last = np.searchsorted(self._ts[rows], ts[inside], side="right") - 1
                enclosing[inside] = np.where(last >= 0, rows[np.maximum(last, 0)], -1)
        # The last row that began before may be over already: then one of its ancestors encloses, or none.
        while len(over := np.flatnonzero((enclosing >= 0) & (self._end[enclosing] + TOLERANCE < end))):
            enclosing[over] = self.parent[enclosing[over]]
        return enclosing

    def busiest(self, tid: Ints, ts: Ints, end: Ints) -> Ints:
        """For each interval (n,), the innermost row of its thread that takes half of it or more, −1 where none does."""
        busiest, many = self.innermost(tid, ts, end), len(self._ts)
        # Of the rows side by side, one that takes half begins before the middle, and is the last or last but one there.
        begun = np.searchsorted(self._ts, np.minimum((ts + end) // 2, end - 1), side="right")
        numbers = {thread: number for number, thread in enumerate(self._threads)}
        outside = np.array([numbers.get(thread, -1) for thread in tid.tolist()], dtype=np.int64)
        left = np.flatnonzero(outside >= 0)
        while len(left):
            around = np.where(busiest[left] >= 0, busiest[left], many + outside[left])
            slot = np.searchsorted(self._siblings, around * (many + 1) + begun[left]) - 1
            best, most = np.full(len(left), -1), np.full(len(left), -1)
            for near in (slot, slot - 1):
                of, row = np.divmod(np.where(near >= 0, self._siblings[near], -1), many + 1)
                inside = np.minimum(self._end[row % many], end[left]) - np.maximum(self._ts[row % many], ts[left])
                beside = (of == around) & (self._end[row % many] > ts[left]) & (self._ts[row % many] < end[left])
                better = beside & (inside >= most) & (2 * inside >= end[left] - ts[left])
                best, most = np.where(better, row, best), np.where(better, inside, most)
            found = best >= 0
            left, best = left[found], best[found]
            busiest[left] = best
        return busiest

    @cached_property
    def _siblings(self) -> Ints:
        """What is right around each row, times (rows + 1), plus the row; ascending. Threads are numbered behind."""
        around = self.parent.copy()
        for number, rows in enumerate(self._threads.values()):
            outermost = rows[self.parent[rows] < 0]
            around[outermost] = len(around) + number
        siblings: Ints = np.sort(around * (len(around) + 1) + np.arange(len(around)))
        return siblings

    def chain(self, row: int) -> Iterator[int]:
        """The row and its ancestors, innermost first."""
        while row >= 0:
            yield row
            row = int(self.parent[row])
