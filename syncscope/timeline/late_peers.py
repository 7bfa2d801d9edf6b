"""Collectives that wait for another rank: they take many times as long as others that move as much."""

from __future__ import annotations

import numpy as np

from syncscope.timeline.intervals import Bools, Ints
from syncscope.timeline.row_groups import group_rows, number_groups
from syncscope.timeline.tables import Collectives

LEAST_ALIKE = 4
"""Collectives of a kind and group that show how long the transfer takes."""

TIMES_AS_LONG, LONG_NS = 10, 100_000
"""One waits if it takes this many times as long as the shortest that moves as much or more, and this many nanoseconds
longer: other work on the device makes one two or three times as long."""


SLOWEST, START_NS = 0.05, 1_000_000
"""Bytes that the slowest network moves in a nanosecond, and the nanoseconds that it takes to start, at most. What takes
more than twice that waits, whether or not there are others alike."""

DIRECT_SLOWEST, DIRECT_START_NS = 1.0, 100_000
"""The same of kernels that write to the memory of the other devices of a host at once: through PCIe at the worst."""


def find_waiting(collectives: Collectives, direct: Bools) -> Ints:
    """For each collective (n,) the ns in which it waits for another rank, as far as one rank shows that: what is beyond
    the shortest of its kind and group that moves as many bytes or more, or beyond what the slowest network takes. 0
    where sizes are unknown. ``direct`` (n,) are those whose kernels use no network (``names.is_direct_collective``)."""
    slowest = START_NS + (collectives.bytes / SLOWEST).astype(np.int64)
    within = DIRECT_START_NS + (collectives.bytes / DIRECT_SLOWEST).astype(np.int64)
    slowest = np.where(direct, within, slowest)
    too_long = (collectives.bytes > 0) & (collectives.dur > 2 * slowest)
    waiting = np.where(too_long, collectives.dur - slowest, 0)
    beyond = collectives.dur - find_transfers(collectives)
    late = (collectives.dur >= TIMES_AS_LONG * (collectives.dur - beyond)) & (beyond >= LONG_NS)
    return np.maximum(waiting, np.where(late, beyond, 0))


def find_transfers(collectives: Collectives) -> Ints:
    """For each collective (n,) the ns that its transfer takes at most: the length of the shortest of its kind and group
    that moves as many bytes or more; its own where too few are alike, or sizes are unknown."""
    transfers = collectives.dur.copy()
    known = np.flatnonzero(collectives.bytes > 0)
    for group in group_rows(number_groups(collectives.name[known], collectives.group[known])):
        rows = known[group]
        if len(rows) < LEAST_ALIKE:
            continue
        rows = rows[np.argsort(-collectives.bytes[rows], kind="stable")]
        size = collectives.bytes[rows]
        # The last of those that move as much, in order of falling size, has seen all of them.
        alike = np.searchsorted(-size, -size, side="right") - 1
        transfers[rows] = np.minimum.accumulate(collectives.dur[rows])[alike]
    return transfers


def mostly_wait(waiting: Ints, exposed: Ints) -> bool:
    """Whether collectives (n,) are exposed mostly since they wait for another rank."""
    return bool(2 * np.minimum(waiting, exposed).sum() > exposed.sum())
