"""What else goes when a loader pins its batches: its own thread takes them out of the workers' memory."""

from __future__ import annotations

import numpy as np

from syncscope.estimate.edits import Edit, Edits
from syncscope.estimate.host import find_batches
from syncscope.estimate.study import Study
from syncscope.timeline.tables import Copies

HANDED = 0.2
"""Share of the time that a batch of a worker takes the program's thread to get, that it takes from the loader's thread:
150 of 700 µs for batches of 4 MB on an H200's host. The rest is the mapping of the worker's memory."""


def take_from_pinning_thread(study: Study, copies: Copies) -> Edits:
    """The edits by which batches that some copies from pageable memory move are handed over by a thread that has pinned
    them; none unless the recorded loader has workers and does not pin."""
    recording = study.timeline.trace.recording
    loader = recording.bare.loader if recording and recording.bare else None
    if loader is None or loader.workers <= 0 or loader.pinned is not False:
        return {}
    moved = copies.take((copies.direction == "HtoD") & (copies.memory == "pageable"))
    copied = np.sort(study.program.items_of(moved.launch))
    items = study.program.items
    rows = np.flatnonzero(items.chain == 0)
    begin, end, _ = find_batches(study.timeline)
    order = np.argsort(end, kind="stable")
    # Each batch belongs to the first call after it.
    at = np.searchsorted(items.begin[rows], end[order], side="left")
    got = [(int(rows[place]), row) for place, row in zip(at.tolist(), order.tolist(), strict=True) if place < len(rows)]
    edits: Edits = {}
    for number, (item, row) in enumerate(got):
        until = got[number + 1][0] if number + 1 < len(got) else len(items)
        if not ((copied >= item) & (copied < until)).any() or items.pre[item] <= 0:
            continue
        inside = max(0.0, end[row] - max(begin[row], items.begin[item] - items.pre[item]))
        edits[item] = Edit(pre=float(1 - (1 - HANDED) * min(inside / items.pre[item], 1.0)))
    return edits
