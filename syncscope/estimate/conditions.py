"""What else goes when a condition is no longer read: the kernels that made it."""

from __future__ import annotations

import re

import numpy as np

from syncscope.estimate.edits import Edit, Question
from syncscope.estimate.study import Study
from syncscope.timeline.tables import Copies

DISPATCH = 50_000.0
"""Nanoseconds of host work before a call that are the dispatch of its op at most: 7 to 40 µs on hosts of H200s. What
takes longer is work of the program's own."""

LOGIC = re.compile(r"(?:elementwise|reduce)_kernel<(?!.*(?:where|mask)).*(?:\bbool[,>]|[Cc]ompare|logical_)")
"""Kernels of PyTorch that make truth values: comparisons, ``isnan`` and its like, ``all``, ``any``."""

BEFORE_LOGIC = re.compile(r"AbsFunctor<|^Memset")
"""What ``isfinite`` and ``isinf`` run before they compare, and some reductions before they begin."""


def without_conditions(study: Study, copies: Copies) -> Question:
    """The edits by which truth values that some copies bring to the host are not made either.

    A condition that nobody reads is of no use: the fix takes out the comparison with the read. Only kernels right
    before the copy of one byte count, so what else the program does with them does not come first.
    """
    names = _kernel_names(study)
    items, edits = study.program.items, dict[int, Edit]()
    for copy in study.program.items_of(copies.launch[(copies.bytes == 1) & (copies.direction == "DtoH")]).tolist():
        made: list[int] = []
        waiting: list[int] = []
        for item in range(copy - 1, -1, -1):
            if items.chain[item] != items.chain[copy]:
                continue
            if items.step[item] != items.step[copy] or items.mark[item]:
                break
            if LOGIC.search(names.get(item, "")):
                made += [*waiting, item]
                waiting = []
            elif made and BEFORE_LOGIC.search(names.get(item, "")):
                waiting.append(item)
            elif items.stream[item] >= 0 or items.pre[item] > DISPATCH:
                break
        for item in (made and [copy, *made[:-1]]) or []:
            dispatch = 0.0 if items.pre[item] <= DISPATCH else 1.0
            edits[item] = Edit(pre=dispatch, own=0.0, gone=True, free=True)
        edits |= {item: Edit(own=0.0, gone=True, free=True) for item in made[-1:]}
    return edits


def _kernel_names(study: Study) -> dict[int, str]:
    """The name of what each item launched on the device."""
    activities = study.timeline.activities
    item = study.program.items_of(activities.launch)
    known = np.flatnonzero(item >= 0)
    return dict(zip(item[known].tolist(), activities.name[known].tolist(), strict=True))
