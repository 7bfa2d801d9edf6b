"""Reads of one value that ops alone do not show: of threads without ops, and of gradient scalers."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from syncscope.timeline.intervals import Bools
from syncscope.timeline.places import Place
from syncscope.timeline.tables import Copies, Ops, Waits
from syncscope.trace.sets import different

VALUE_BYTES = 8
"""A single value has no more bytes than this, but for complex128, which looks like two values."""

SCALER_CHECK = "aten::_amp_foreach_non_finite_check_and_unscale_"
"""What ``GradScaler`` runs on the gradients. It reads the answer right behind it, before it steps the optimizer."""

READ = "aten::item"


def brings_value(waits: Waits, copies: Copies, places: Sequence[Place]) -> Bools:
    """Which waits (n,) of threads without ops complete a copy of one value to pinned memory. PyTorch reads a value in
    this way, while a blocking copy to the host goes to pageable memory. A line that PyTorch warned of says more than
    the copy, and is left to it."""
    of_value = (copies.direction == "DtoH") & (copies.memory == "pinned") & (copies.bytes >= 0)
    of_value &= copies.bytes <= VALUE_BYTES
    seen = np.array([places[place].source == "hook" for place in waits.place.tolist()], dtype=bool)
    brings: Bools = np.append(of_value, False)[waits.copy] & ~waits.ops_known & ~seen
    return brings


def reads_scaler(waits: Waits, ops: Ops) -> Bools:
    """Which waits (n,) read whether a gradient scaler found gradients that are not finite: the outermost op around the
    wait comes right behind the check. One read for each device follows."""
    reads = np.zeros(len(waits), dtype=bool)
    if not ops.named(lambda name: name == SCALER_CHECK).any():
        return reads
    for tid in different(waits.tid).tolist():
        roots = ops.nesting.roots(tid)
        names = ops.name[roots]
        # What comes before reads in a row stands before each of them.
        before = np.where(names[:-1] != READ, np.arange(len(roots) - 1), 0)
        before = np.append(-1, np.maximum.accumulate(before)) if len(roots) else before
        mine = np.flatnonzero((waits.tid == tid) & (waits.op >= 0))
        root = np.searchsorted(ops.ts[roots], waits.ts[mine], side="right") - 1
        behind = before[root]
        reads[mine] = (names[root] == READ) & (behind >= 0) & (names[behind] == SCALER_CHECK)
    return reads
