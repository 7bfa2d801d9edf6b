"""Find what encloses what on a host thread, from begin and end times alone: chains of ops, and Python stacks."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from syncscope.timeline.intervals import Ints

TOLERANCE = 1_000
"""Nanoseconds by which a call may stick out of what encloses it: rows of different clocks are rounded apart."""


class Nesting:
    """Which rows of a host table enclose which, thread by thread.

    A row is named by its position in the table, −1 is none.
    """

    def __init__(self, ts: Ints, end: Ints, tid: Ints) -> None:
        """``ts``, ``end`` and ``tid`` (n,) in order of ``ts``, the longest first among equals.

        A row whose end the trace lost lasts until the end of the trace: such a row ends with the one around it.
        """
        self._ts, self._end = ts, end
        self.parent: Ints = np.full(len(ts), -1, dtype=np.int64)
        """For each row (n,) the row right around it."""
        self._threads: dict[int, Ints] = {}
        for thread in np.unique(tid):
            rows = np.flatnonzero(tid == thread)
            self._threads[int(thread)] = rows
            self.parent[rows] = self._parents(rows)
            around = self.parent[rows]
            if ((around >= 0) & (self._end[around] + TOLERANCE < self._end[rows])).any():
                self._nest(rows)

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

    def _nest(self, rows: Ints) -> None:
        """The parents of rows of one thread of which some stick out of the one around them, which are cut off there."""
        ts, end = self._ts[rows].tolist(), self._end[rows].tolist()
        parents: list[int] = []
        open_rows: list[int] = []
        for row, begin in enumerate(ts):
            while open_rows and end[open_rows[-1]] <= begin:
                open_rows.pop()
            if open_rows:
                end[row] = min(end[row], end[open_rows[-1]])
            parents.append(open_rows[-1] if open_rows else -1)
            open_rows.append(row)
        parent = np.array(parents, dtype=np.int64)
        self.parent[rows] = np.where(parent >= 0, rows[parent], -1)
        self._end = self._end.copy()
        self._end[rows] = end

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
        busiest = self.innermost(tid, ts, end)
        order = np.argsort(self.parent, kind="stable")
        parents = self.parent[order]
        roots = {thread: self.roots(thread) for thread in np.unique(tid).tolist()}
        for i in range(len(ts)):
            row, outermost = int(busiest[i]), roots[int(tid[i])]
            if not len(outermost):
                continue
            while True:
                first, last = np.searchsorted(parents, [row, row + 1])
                below = order[first:last] if row >= 0 else outermost
                # Siblings follow each other: those that overlap the interval are next to each other.
                near = below[np.searchsorted(self._end[below], ts[i], side="right") :]
                near = near[: np.searchsorted(self._ts[near], end[i])]
                inside = np.minimum(self._end[near], end[i]) - np.maximum(self._ts[near], ts[i])
                if not len(near) or 2 * inside.max() < end[i] - ts[i]:
                    break
                row = int(near[inside.argmax()])
            busiest[i] = row
        return busiest

    def chain(self, row: int) -> Iterator[int]:
        """The row and its ancestors, innermost first."""
        while row >= 0:
            yield row
            row = int(self.parent[row])
