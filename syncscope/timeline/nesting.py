"""What encloses what on a host thread: op chains and Python stacks from begin and end times alone."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pandas as pd

from syncscope.timeline.intervals import Ints

TOLERANCE = 1_000
"""Nanoseconds by which a call may stick out of what encloses it: rows of different clocks are rounded apart."""


class Nesting:
    """The forest of rows of a host table (``ts``, ``end``, ``tid``): one tree of enclosing rows a thread.

    Rows are named by their position in the table, −1 is none.
    """

    def __init__(self, table: pd.DataFrame) -> None:
        self._ts = table["ts"].to_numpy(np.int64)
        self._end = table["end"].to_numpy(np.int64)
        self.parent: Ints = np.full(len(table), -1, dtype=np.int64)
        tids = table["tid"].to_numpy(np.int64)
        self._threads: dict[int, Ints] = {}
        for tid in np.unique(tids):
            rows = np.flatnonzero(tids == tid)
            self._threads[int(tid)] = rows
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
        found = np.full(len(ts), -1, dtype=np.int64)
        if not len(self._ts):
            return found
        for thread, rows in self._threads.items():
            mine = np.flatnonzero(tid == thread)
            if len(mine):
                last = np.searchsorted(self._ts[rows], ts[mine], side="right") - 1
                found[mine] = np.where(last >= 0, rows[np.maximum(last, 0)], -1)
        # The last row that began before may be over already: then one of its ancestors encloses, or none.
        while len(over := np.flatnonzero((found >= 0) & (self._end[found] + TOLERANCE < end))):
            found[over] = self.parent[found[over]]
        return found

    def chain(self, row: int) -> Iterator[int]:
        """The row and its ancestors, innermost first."""
        while row >= 0:
            yield row
            row = int(self.parent[row])
