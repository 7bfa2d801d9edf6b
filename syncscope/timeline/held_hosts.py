"""For how long a host may wait for collectives where the trace has no row of a wait.

A host that makes no call while a collective runs, and goes on as it ends, waits for it, whatever it is in: calls that
fail, or that free much at once, may have no row. Calls for memory may wait for all that the device does.
"""

from __future__ import annotations

import numpy as np

from syncscope.timeline.bubbles import SLOW_PACE
from syncscope.timeline.calls import COMMANDS
from syncscope.timeline.intervals import Union
from syncscope.timeline.tables import Calls, Collectives
from syncscope.trace.names import MEMORY_ROLES

AT_ONCE = 1_000_000
"""Nanoseconds after a collective within which a host goes on that waited for it."""


def find_unseen_waits(calls: Calls, collectives: Collectives) -> int:
    """Nanoseconds for which the thread that launches most may wait for ``collectives`` beside which nothing computes,
    without a row of a wait."""
    threads, many = np.unique(calls.tid[calls.do(COMMANDS)], return_counts=True)
    long = collectives.take(collectives.exposed >= SLOW_PACE)
    if not len(threads) or not len(long):
        return 0
    mine = calls.take(calls.tid == threads[many.argmax()])
    memory = mine.take(mine.do(MEMORY_ROLES))
    asks = int(Union(long.ts, long.end).within(memory.ts, memory.end).sum())
    returned = np.maximum.accumulate(np.append(0, mine.end))
    following = np.searchsorted(mine.ts, long.end)
    goes_on = np.append(mine.ts, np.iinfo(np.int64).max)[following] - long.end <= AT_ONCE
    silent = np.minimum(long.end - np.maximum(returned[following], long.ts), long.exposed)
    waits = goes_on & (silent >= SLOW_PACE)
    return asks + int(silent[waits].sum())
