"""The DataLoader that feeds the steps: what it has ready, and how fast its workers are.

PyTorch promises none of the attributes that are read here. What is missing is ``None``.
"""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from typing import Any

from syncscope.collect.bare.steps import Batch, Step
from syncscope.schema.recording import RecordedLoader


def ready_batches(iterator: Any) -> int | None:
    """How many batches the iterator of a loader with workers has ready; ``None`` where that is not known."""
    try:
        arrived = iterator._data_queue.qsize()
        return int(arrived) + sum(len(task) == 2 for task in iterator._task_info.values())  # those out of their order
    except Exception:  # no workers, no such attribute, or a platform without qsize
        return None


def describe(iterator: Any) -> RecordedLoader:
    """How the loader of ``iterator`` was set up."""
    workers = _number(_ask(iterator, "_num_workers")) or 0
    pinned = _ask(iterator, "_pin_memory")
    return RecordedLoader(
        workers=workers,
        prefetch=_number(_ask(iterator, "_prefetch_factor")) if workers else None,
        pinned=pinned if pinned is True or pinned is False else None,
        batch_size=_number(_ask(_ask(iterator, "_index_sampler"), "batch_size")),
    )


def _ask(owner: Any, name: str) -> Any:
    """``owner.name``; ``None`` where it has none, or does not say: the program may have written its sampler."""
    try:
        return getattr(owner, name, None)
    except Exception:
        return None


def _number(value: Any) -> int | None:
    return value if issubclass(type(value), int) and type(value) is not bool else None


def median_ready(steps: Sequence[Step]) -> int | None:
    known = [batch.ready for step in steps for batch in step.batches if batch.ready is not None]
    return int(statistics.median(known)) if known else None


def interval_ns(steps: Sequence[Step]) -> int | None:
    """Nanoseconds between two batches that the workers finish: from one batch that the host waited for to the next such
    one, divided by the batches between, on average. ``None`` where it waited for fewer than three."""
    waited = batches = total = 0
    last: Batch | None = None
    since = 0
    end_ns: int | None = None
    for step in steps:
        if end_ns is not None and step.begin_ns != end_ns:
            last = None  # a step was set aside
        end_ns = step.begin_ns + step.length_ns
        for batch in step.batches:
            since += 1
            if batch.ready != 0:
                continue
            waited += 1
            if last is not None:
                total += batch.end_ns - last.end_ns
                batches += since
            last, since = batch, 0
    return total // batches if batches and waited >= 3 else None
