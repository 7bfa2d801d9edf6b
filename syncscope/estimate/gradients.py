"""Find when collectives that reduce gradients could begin if they ran beside the backward that makes the gradients."""

from __future__ import annotations

import numpy as np

from syncscope.estimate.dependencies import Target
from syncscope.estimate.edits import Edit, Edits
from syncscope.estimate.host import leading_thread
from syncscope.estimate.items import Items
from syncscope.estimate.program import Program
from syncscope.timeline import Timeline
from syncscope.timeline.intervals import Ints
from syncscope.trace.sets import different

BUCKET = 25e6
"""Bytes that are reduced at once, as DistributedDataParallel does by default."""

PIECES = 8
"""Pieces of a collective whose size the trace does not say."""

MOST_PIECES = 16

OTHERS = 0.1
"""Other compute between backward and the collectives that reduce its gradients may take this share of backward's
time."""


def spread_over_backward(timeline: Timeline, program: Program, collectives: dict[int, float]) -> Edits:
    """Cut collectives into pieces that run beside the backward before them; no edits where there is no backward.

    ``collectives`` are items with their bytes (−1 unknown). Backward's kernels are those that another thread than the
    steps' launches. Which of them makes which gradient is not recorded, so gradients are taken to come evenly, and each
    collective to need no more than its share.
    """
    items = program.items
    pieces: Edits = {}
    every = np.array(sorted(collectives), dtype=np.int64)
    step = items.step[every]
    for number in different(step):
        mine = every[step == number]
        backward = _backward(timeline, items, mine)
        if not len(backward):
            return {}
        pieces |= _spread(items, mine, collectives, backward)
    return pieces


def _backward(timeline: Timeline, items: Items, mine: Ints) -> Ints:
    """Items of the backward that the collectives of one step follow, on one stream."""
    tid = np.append(timeline.calls.tid, -1)[items.call]
    dur, streams = items.dur, items.stream
    computed: Ints = np.flatnonzero(items.kernel & (items.call >= 0) & (items.step == items.step[mine[0]]))
    computed = computed[computed < mine[-1]]
    beside = tid[computed] != leading_thread(timeline)
    backward: Ints = computed[beside]
    if not len(backward):
        return backward
    between = computed[~beside & (computed > backward[-1])]
    if dur[between].sum() > OTHERS * dur[backward].sum():
        return backward[:0]
    busiest = np.argmax(np.bincount(streams[backward], weights=dur[backward]))
    one: Ints = backward[streams[backward] == busiest]
    return one


def _spread(items: Items, mine: Ints, size: dict[int, float], backward: Ints) -> Edits:
    dur, stream = items.dur, int(items.stream[backward[0]])
    done, whole = np.cumsum(dur[backward]), float(dur[mine].sum())
    question, before = {}, 0.0
    for item in mine.tolist():
        many = _pieces(size[item], alone=len(mine) == 1)
        shares = (before + dur[item] * np.arange(1, many + 1) / many) / max(whole, 1.0)
        # No later launch of the host delays it.
        last = int(np.searchsorted(backward, item)) - 1
        rows = np.minimum(np.searchsorted(done, shares * done[-1] * (1 - 1e-9)), max(last, 0))
        question[item] = Edit(pieces=tuple(Target(stream, kernel) for kernel in backward[rows].tolist()))
        before += float(dur[item])
    return question


def _pieces(size: float, alone: bool) -> int:
    """How many pieces a collective has: by its bytes, else 1 for one of many, which is small already."""
    many = round(size / BUCKET) if size > 0 else PIECES if alone else 1
    return min(max(many, 1), MOST_PIECES)
