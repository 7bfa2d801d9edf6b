"""Find what encloses what on a host thread, from begin and end times alone: chains of ops, and Python stacks."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from itertools import pairwise

import numpy as np

from syncscope.timeline.intervals import Ints, different

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
        for thread in different(tid):
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
        shallow = depth.astype(np.min_scalar_type(int(depth.max(initial=0))))  # numpy sorts narrow numbers by radix
        begins = np.cumsum(np.bincount(shallow))
        levels = np.split(np.argsort(shallow, kind="stable"), begins)
        for above, here in pairwise(levels[:-1]):
            parents[here] = above[np.searchsorted(above, here) - 1] if len(above) else -1
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
        first, behind = self._below(busiest, tid)
        live = np.arange(len(ts) if len(self._ts) else 0)
        while len(live):
            # Rows that one row encloses follow each other. What takes half of an interval is there in its middle: it is
            # the last of them that begins before, or the one before that, which comes first where both take half.
            middle = ts[live] + (end[live] - ts[live]) // 2
            last = self._last_begun(first[live], behind[live], middle)
            best, most = np.full(len(live), -1, dtype=np.int64), np.full(len(live), -1, dtype=np.int64)
            for place in (last - 1, last):
                row = self._in_order[np.maximum(place, 0)]
                inside = np.minimum(self._end[row], end[live]) - np.maximum(self._ts[row], ts[live])
                near = (self._end[row] > ts[live]) & (self._ts[row] < end[live]) & (place >= first[live])
                better = near & (inside > most) & (2 * inside >= end[live] - ts[live])
                best, most = np.where(better, row, best), np.where(better, inside, most)
            live, best = live[best >= 0], best[best >= 0]
            busiest[live] = best
            first[live], behind[live] = self._below(best, tid[live])
        return busiest

    @cached_property
    def _around(self) -> Ints:
        """``parent``, and for the outermost rows of each thread a number of their own, less than −1."""
        around = self.parent.copy()
        for number, thread in enumerate(self._threads):
            around[self.roots(thread)] = -2 - number
        return around

    @cached_property
    def _in_order(self) -> Ints:
        """The rows by the row around them and then by time: those of one row follow each other."""
        return np.argsort(self._around, kind="stable")

    @cached_property
    def _around_in_order(self) -> Ints:
        return self._around[self._in_order]

    def _below(self, rows: Ints, tid: Ints) -> tuple[Ints, Ints]:
        """Where the rows right inside each of ``rows`` (n,), or inside no row of its thread, begin and end in
        ``_in_order``."""
        around = rows.copy()
        for number, thread in enumerate(self._threads):
            around[(rows < 0) & (tid == thread)] = -2 - number
        order = self._around_in_order
        return np.searchsorted(order, around), np.searchsorted(order, around, side="right")

    def _last_begun(self, first: Ints, behind: Ints, time: Ints) -> Ints:
        """For each stretch of ``_in_order`` the place of the last row that begins at a time or before it, ``first − 1``
        for none."""
        low, high = first.copy(), behind.copy()
        while len(open_ := np.flatnonzero(low < high)):
            middle = (low[open_] + high[open_]) // 2
            begun = self._ts[self._in_order[middle]] <= time[open_]
            low[open_], high[open_] = np.where(begun, middle + 1, low[open_]), np.where(begun, high[open_], middle)
        return low - 1

    def chain(self, row: int) -> Iterator[int]:
        """The row and its ancestors, innermost first."""
        while row >= 0:
            yield row
            row = int(self.parent[row])
