"""What else goes when a condition is no longer read: the kernels that made it."""

from __future__ import annotations

from syncscope.estimate.dispatch import DISPATCH, without_dispatch
from syncscope.estimate.edits import Edit, Edits
from syncscope.estimate.study import Study
from syncscope.patterns import compile_later
from syncscope.timeline.tables import Copies

LOGIC = compile_later(r"(?:elementwise|reduce)_kernel<(?!.*(?:where|mask)).*(?:\bbool[,>]|[Cc]ompare|logical_)")
"""Kernels of PyTorch that make truth values: comparisons, ``isnan`` and its like, ``all``, ``any``."""

MAGNITUDE, CLEARED = "AbsFunctor<", "Memset"
"""What ``isfinite`` and ``isinf`` run before they compare, and some reductions before they begin."""


def without_conditions(study: Study, copies: Copies) -> Edits:
    """The edits by which truth values that some copies bring to the host are not made either.

    A condition that nobody reads is of no use: the fix takes out the comparison with the read. Only kernels right
    before the copy of one byte count, so what else the program does with them does not come first.
    """
    read = study.program.items_of(copies.launch[(copies.bytes == 1) & (copies.direction == "DtoH")])
    edits: Edits = {}
    if not (read >= 0).any():
        return edits
    pre = study.program.items.pre
    for copy in read[read >= 0].tolist():
        made = _made_for(study, copy)
        for item in [copy, *made[:-1]] if made else []:
            edits[item] = Edit(pre=0.0 if pre[item] <= DISPATCH else 1.0, own=0.0, gone=True, free=True)
        edits |= {item: Edit(pre=without_dispatch(study, item), own=0.0, gone=True, free=True) for item in made[-1:]}
    return edits


def _made_for(study: Study, copy: int) -> list[int]:
    """The launches right before a copy that make the truth value that it brings, the last first."""
    items, names = study.program.items, study.names
    made: list[int] = []
    between: list[int] = []
    for item in range(copy - 1, -1, -1):
        if items.chain[item] != items.chain[copy]:
            continue
        if items.step[item] != items.step[copy] or items.mark[item]:
            break
        if LOGIC.search(names[item]) or (made and MAGNITUDE in names[item]):
            made += [*between, item]
            between = []
        elif made and names[item].startswith(CLEARED):
            between.append(item)
        elif items.stream[item] >= 0 or items.pre[item] > DISPATCH:
            break
    return made
