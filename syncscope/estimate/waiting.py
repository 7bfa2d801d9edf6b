"""What a wait takes the host besides waiting: it goes with the wait."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from syncscope.estimate.edits import Edit, Edits
from syncscope.estimate.study import Study
from syncscope.trace.sets import different

BEFORE = 4_000.0
"""Nanoseconds of host work from the call of Python to that of CUDA, at most: the op's dispatch. From ``aten::item`` to
its copy it was 7.2 µs in 27 recordings with ops on H200s, the median of their medians, of which recording two ops
takes 3.4."""

AFTER = 5_000.0
"""Nanoseconds of host work after the call, at most: the way back to Python, and a launch that finds the device idle. In
half of 40 recordings whose step the device does not bound, a wait was worth 9 µs more than the waiting and the
calls."""


def without_call(study: Study, first: Sequence[int], waits: Sequence[int], *, ops: int = 1) -> Edits:
    """The edits by which the host neither gets to the ``first`` calls of some waits, each by so many ``ops``, nor back
    from the ``waits``."""
    edits: Edits = {}
    for items, most in ((first, ops * BEFORE), (_following(study, waits), AFTER)):
        for item in items:
            left = _left(study, item, most)
            if left < 1 and not (item in edits and edits[item].pre <= left):
                edits[item] = Edit(pre=left)
    return edits


def _following(study: Study, waits: Sequence[int]) -> list[int]:
    """The calls of the same threads that come after some waits."""
    chain, rows = study.program.items.chain, np.asarray(waits, dtype=np.int64)
    found = np.full(len(rows), -1, dtype=np.int64)
    for number in different(chain[rows]):
        mine, of = np.flatnonzero(chain == number), chain[rows] == number
        after = np.searchsorted(mine, rows[of], side="right")
        found[of] = np.append(mine, -1)[after]
    return [int(item) for item in found if item >= 0]


def _left(study: Study, item: int, most: float) -> float:
    """The share of the host's work before a call that stays without ``most`` ns of it, rounded, so that many items are
    changed in the same way."""
    pre = float(study.without_profiler.pre[item])
    return round(1 - min(most / pre, 1.0), 3) if pre > 0 else 1.0
