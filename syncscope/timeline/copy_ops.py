"""Find the op that makes a copy, also where the clocks of runtime calls and of ops are some microseconds apart."""

from __future__ import annotations

import numpy as np

from syncscope.timeline.intervals import Ints
from syncscope.timeline.nesting import TOLERANCE
from syncscope.timeline.op_chains import COPIES, INDEXING, has_dynamic_shape, reads_scalar
from syncscope.timeline.tables import Calls, Ops
from syncscope.trace.sets import different

COPYING = "aten::copy_"
"""The op that calls the runtime to copy between host and device; the ops around it and beside it do not."""

CLOCKS_APART = 20_000
"""Nanoseconds between a call and the op that makes it, at most, where their clocks disagree. Nearly all seen are
within 15; one that is further away is left to the op around it."""


class CopyOps:
    """The ops of the calls that copy.

    Calls lie inside of the ops that make them, if both are timed by one clock. PyTorch up to 2.3 rounds times to
    microseconds and converts those of calls, so some begin before their op or end after it. There a call that copies
    belongs to the copying op that overlaps it most, or is next to it.
    """

    def __init__(self, calls: Calls, ops: Ops) -> None:
        self._calls, self._ops = calls, ops
        self._copying = np.flatnonzero(ops.named(COPYING.__eq__))
        rows = np.flatnonzero(calls.do(["copy", "copy-sync"]))
        op, shared = self._nearest(rows)
        rows, op = rows[shared > 0], op[shared > 0]
        astride = (calls.ts[rows] + TOLERANCE < ops.ts[op]) | (calls.end[rows] - TOLERANCE > ops.end[op])
        self.clocks_disagree = bool(astride.any())
        """Whether a call begins before the op that copies, or ends after it, so that the two clocks are apart."""

    def of(self, rows: Ints) -> Ints:
        """The op of each of some calls that copy (n,), as a position among the ops, −1 for none."""
        calls, ops = self._calls, self._ops
        found = ops.around(calls)[rows]
        if not self.clocks_disagree:
            return found
        op, shared = self._nearest(rows)
        for at in np.flatnonzero(shared > -CLOCKS_APART).tolist():
            if self._copies_instead(int(found[at]), int(shared[at])):
                found[at] = op[at]
        return found

    def _copies_instead(self, found: int, shared: int) -> bool:
        """Whether a call does not belong to the op around it but to a copying one, with which it shares some time or,
        below 0, from which it is apart."""
        chain = self._ops.chain(found)
        if COPYING in chain or reads_scalar(chain) or has_dynamic_shape(chain):
            return False
        return shared > 0 or not chain or chain[-1] in COPIES | INDEXING

    def _nearest(self, rows: Ints) -> tuple[Ints, Ints]:
        """For each of some calls (n,) the copying op of its thread that overlaps it most, or is nearest, and the
        nanoseconds that the two share; below 0 how far they are apart."""
        calls, ops = self._calls, self._ops
        best = np.zeros(len(rows), dtype=np.int64)
        shared = np.full(len(rows), np.iinfo(np.int64).min, dtype=np.int64)
        for tid in different(calls.tid[rows]):
            mine, copying = np.flatnonzero(calls.tid[rows] == tid), self._copying[ops.tid[self._copying] == tid]
            if not len(copying):
                continue
            begin, end = calls.ts[rows[mine]], calls.end[rows[mine]]
            after = np.searchsorted(ops.ts[copying], begin, side="right")
            for slot in (after - 1, after):
                op = copying[np.clip(slot, 0, len(copying) - 1)]
                both = np.minimum(end, ops.end[op]) - np.maximum(begin, ops.ts[op])
                more = both > shared[mine]
                best[mine[more]], shared[mine[more]] = op[more], both[more]
        return best, shared
