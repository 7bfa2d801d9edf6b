"""What changes of the program's loader would save: questions that no finding asks."""

from __future__ import annotations

import numpy as np

from syncscope.estimate.batches import may_bring_batches, take_from_pinning_thread
from syncscope.estimate.edits import NOTHING, Edit, Edits, Question, combine
from syncscope.estimate.questions import SMALL_READ
from syncscope.estimate.study import Study
from syncscope.schema.recording import RecordedLoader

MORE = 2
"""Workers that are added."""


SHARED = 0.25
"""Share of the time in which a worker holds up each of the others, at most: they share the host's cores, caches and
memory. On the hosts of H200s three were 1.6 to 3.4 times as fast as one, and this makes them twice as fast."""


def ask_about_loader(study: Study) -> tuple[tuple[str, Question, Question], ...]:
    """Each change of the recorded loader that changes something in the steps: what it is called, the change, and what
    comes of it at least, where that is another question."""
    recording = study.timeline.trace.recording
    loader = recording.bare.loader if recording and recording.bare else None
    if loader is None:
        return ()
    more, fewest = (Question.of(add_workers(study, loader, shared)) for shared in (0.0, SHARED))
    asked = [("two more workers" if loader.workers else "two workers", more, fewest)]
    if not loader.pinned:
        asked.append(("pinned and prefetched batches", prefetch_batches(study), NOTHING))
    return tuple(one for one in asked if one[1])


def add_workers(study: Study, loader: RecordedLoader, shared: float = 0.0) -> Edits:
    """Batches come at the pace of more workers, each of which the others hold up for a ``shared`` part of its time.
    Without any, loading a batch took the host itself as long as it would take one of them."""
    items, workers = study.program.items, max(int(loader.workers), 0)
    more, had = workers + MORE, max(workers, 1)
    share = min(had / more * (1 + shared * (more - 1)) / (1 + shared * (had - 1)), 1.0)
    took = items.period if workers else items.loading
    return {item: Edit(batch=float(took[item] * share)) for item in np.flatnonzero(items.loading > 0).tolist()}


def prefetch_batches(study: Study) -> Question:
    """The copies of batches to the device come from pinned memory, a step early and on a stream of their own."""
    copies = study.timeline.copies
    copies = copies.take((copies.direction == "HtoD") & (copies.bytes > SMALL_READ) & (copies.memory != "pinned"))
    copies = copies.take(may_bring_batches(study, copies))
    item = study.program.items_of(copies.launch)
    copies, item = copies.take(item >= 0), item[item >= 0]
    edits = {number: Edit(free=True) for number in study.completing(copies)}
    sizes = zip(item.tolist(), copies.bytes.tolist(), strict=True)
    edits |= {number: Edit(free=True, dur=study.rate("HtoD").ns(size), early=True) for number, size in sizes}
    return combine([edits, take_from_pinning_thread(study, copies)])
