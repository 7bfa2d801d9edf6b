"""Reads that follow each other with nothing launched between them: one would do for all."""

from __future__ import annotations

import numpy as np

from syncscope.rules.base.groups import Group
from syncscope.timeline.row_groups import number_groups

LEAST = 4
"""Reads that are a row."""

MOST = 0.5
"""This share of the reads must be in rows."""


def are_in_a_row(group: Group) -> bool:
    """Whether most of a group's waits follow others of the group in their thread, and nothing is launched between."""
    if len(group.rows.wait) < LEAST:
        return False
    waits = group.timeline.waits.take(group.rows.wait)
    order = np.lexsort((waits.begin, waits.tid))
    begin, tid = waits.begin[order], waits.tid[order]
    row = number_groups(tid, np.searchsorted(group.timeline.launch_times, begin))
    return bool((np.bincount(row)[row] >= LEAST).mean() >= MOST)
