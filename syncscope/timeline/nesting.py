"""Find what encloses what on a host thread, from begin and end times alone: chains of ops, and Python stacks."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from syncscope.timeline.intervals import Ints
from syncscope.trace.sets import different

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
        self._begins: dict[int, Ints] = {}
        """For each thread when its rows begin."""
        threads = different(tid).tolist()
        for thread in threads:
            if len(threads) == 1:  # as with Python's frames, the most of all rows
                rows, self._begins[thread], ends = np.arange(len(ts)), ts, end
            else:
                rows = np.flatnonzero(tid == thread)
                self._begins[thread], ends = ts[rows], end[rows]
            self._threads[thread] = rows
            parents = _find_parents(self._begins[thread], ends)
            latest = ends[parents]
            latest += TOLERANCE
            if ((latest < ends) & (parents >= 0)).any():
                self._nest(rows)
            elif len(threads) == 1:
                self.parent = parents
            else:
                self.parent[rows] = np.where(parents >= 0, rows[parents], -1)

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
        enclosing = self._last_begun(tid, ts)
        if not len(self._ts):
            return enclosing
        # The last row that began before may be over already: then one of its ancestors encloses, or none.
        while len(over := np.flatnonzero((enclosing >= 0) & (self._end[enclosing] + TOLERANCE < end))):
            enclosing[over] = self.parent[enclosing[over]]
        return enclosing

    def busiest(self, tid: Ints, ts: Ints, end: Ints) -> Ints:
        """For each interval (n,), the innermost row of its thread that takes half of it or more, −1 where none does."""
        around = self.innermost(tid, ts, end)
        if not len(self._ts):
            return around
        # What takes half of an interval is there in its middle. Of two that take half each, the first counts.
        middle = ts + (end - ts) // 2
        first = self._taking_half(self._last_begun(tid, middle - 1), around, ts, end)
        second = self._taking_half(self._last_begun(tid, middle), around, ts, end)
        best = np.where((first >= 0) & (self._end[first] <= middle), first, second)
        return np.where(best >= 0, best, around)

    def _taking_half(self, rows: Ints, around: Ints, ts: Ints, end: Ints) -> Ints:
        """For each interval (n,), the innermost of its row and of those around it, up to ``around``, that takes half of
        it, as do all between; −1 where none does."""
        best, row = np.full(len(rows), -1, dtype=np.int64), rows
        live = np.arange(len(rows))
        while len(live := live[(row[live] != around[live]) & (row[live] >= 0)]):
            mine = row[live]
            begin, over = np.maximum(self._ts[mine], ts[live]), np.minimum(self._end[mine], end[live])
            near = (self._end[mine] > ts[live]) & (self._ts[mine] < end[live])
            half = near & (2 * (over - begin) >= end[live] - ts[live])
            best[live] = np.where(half, np.where(best[live] >= 0, best[live], mine), -1)
            row = row.copy()
            row[live] = self.parent[mine]
        best[row != around] = -1  # not inside of what is around
        return best

    def _last_begun(self, tid: Ints, time: Ints) -> Ints:
        """For each moment (n,), the last row of its thread that begins then or before, −1 for none."""
        last = np.full(len(time), -1, dtype=np.int64)
        for thread, rows in self._threads.items():
            mine = np.flatnonzero(tid == thread)
            if len(mine):
                place = np.searchsorted(self._begins[thread], time[mine], side="right") - 1
                last[mine] = np.where(place >= 0, rows[np.maximum(place, 0)], -1)
        return last

    def chain(self, row: int) -> Iterator[int]:
        """The row and its ancestors, innermost first."""
        while row >= 0:
            yield row
            row = self.parent.item(row)


def _find_parents(ts: Ints, end: Ints) -> Ints:
    """The parents of the rows of one thread, in order of ``ts``, as positions among them; −1 for none."""
    # Depth is begins minus ends seen so far; the ends at a begin come first. What is new takes memory, so it is reused.
    ends = ts + 1
    np.maximum(ends, end, out=ends)
    ends.sort(kind="stable")  # nearly in order, for which this takes a tenth of the time
    depth = np.searchsorted(ends, ts, side="right")
    np.subtract(np.arange(len(ts)), depth, out=depth)
    shallow = depth.astype(np.min_scalar_type(int(depth.max(initial=0))))  # numpy sorts narrow numbers by radix
    by_depth = np.argsort(shallow, kind="stable")
    # The parent of a row at depth d is the last row at depth d − 1 before it. So a row that is deeper than the one
    # before is the first child of that one, and the next rows of its depth have the same parent.
    deeper = np.zeros(len(ts), dtype=bool)
    deeper[1:] = shallow[1:] > shallow[:-1]
    first = np.flatnonzero(deeper[by_depth])
    parents = depth
    parents[by_depth] = np.repeat(np.append(-1, by_depth[first] - 1), np.diff(first, prepend=0, append=len(ts)))
    return parents
