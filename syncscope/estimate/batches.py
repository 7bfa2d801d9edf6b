"""What else goes when a loader pins its batches: its own thread takes them out of the workers' memory."""

from __future__ import annotations

import numpy as np

from syncscope.estimate.edits import Edit, Edits
from syncscope.estimate.host import find_batches
from syncscope.estimate.study import Study
from syncscope.rules import BY_CODE, Hit
from syncscope.rules.base.program import MODULE_CALL
from syncscope.rules.base.question import Intervention
from syncscope.schema.expressions import moves_new_tensor
from syncscope.timeline import Place
from syncscope.timeline.intervals import Bools
from syncscope.timeline.tables import Copies

HANDED = 0.2
"""Share of the time that a batch of a worker takes the program's thread to get, that it takes from the loader's thread:
150 of 700 µs for batches of 4 MB on an H200's host. The rest is the mapping of the worker's memory."""

HANDS_BATCHES = ("torch/nn/parallel/scatter_gather.py", "torch/distributed/utils.py")
"""Files of PyTorch that move a batch to the device inside of a module that holds the model."""


def take_from_pinning_thread(study: Study, copies: Copies) -> Edits:
    """The edits by which batches that some copies from pageable memory move are handed over by a thread that has pinned
    them; none unless the recorded loader has workers and does not pin."""
    recording = study.timeline.trace.recording
    loader = recording.bare.loader if recording and recording.bare else None
    if loader is None or loader.workers <= 0 or loader.pinned is not False:
        return {}
    moved = copies.take((copies.direction == "HtoD") & (copies.memory == "pageable"))
    moved = moved.take(may_bring_batches(study, moved))
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


def measure_handed_over(study: Study, hit: Hit) -> float:
    """Milliseconds a step that a loader which pins takes off the program's thread, where that is the fix of a finding,
    by taking the batches from the workers; 0 for other findings, and for one about copies whose wait has its own."""
    if BY_CODE[hit.finding.rule].question is not Intervention.COPY_ASYNCHRONOUSLY or not len(study.timeline.steps):
        return 0.0
    copies = study.copies(hit)[0]
    if not hit.waits and (copies.wait >= 0).any():
        return 0.0
    edits, pre = take_from_pinning_thread(study, copies), study.program.items.pre
    return sum(float(pre[item]) * (1 - edit.pre) for item, edit in edits.items()) * 1e-6 / len(study.timeline.steps)


def may_bring_batches(study: Study, copies: Copies) -> Bools:
    """Which copies (n,) may be those of a batch."""
    return np.array([_may_bring_batch(study.timeline.places[place]) for place in copies.place.tolist()], dtype=bool)


def _may_bring_batch(place: Place) -> bool:
    """Whether a copy at a place may be one of a batch: not where it moves what is made there, and not inside of a
    module, unless that hands a batch on to devices."""
    running = place.running or (place.site.expression if place.site else None)
    inside = place.runs_through(MODULE_CALL) and not place.runs_through(*HANDS_BATCHES)
    return not inside and not moves_new_tensor(running)
