"""What else goes when a condition is no longer read: the kernels that made it.

A condition of the program's own is made by what compares right before the read. What an op or a distribution checks
begins with sums, remainders or extremes, which nobody else can use: they go where the launches are those of its code.
"""

from __future__ import annotations

import itertools

from syncscope.estimate.dispatch import DISPATCH, without_dispatch
from syncscope.estimate.edits import Edit, Edits
from syncscope.estimate.extremes import EXTREMES, launches_before
from syncscope.estimate.study import Study
from syncscope.patterns import compile_later
from syncscope.rules import Hit
from syncscope.timeline.op_chains import matching

LOGIC = compile_later(r"(?:elementwise|reduce)_kernel<(?!.*(?:where|mask)).*(?:\bbool[,>]|[Cc]ompare|logical_)")
"""Kernels of PyTorch that make truth values: comparisons, ``isnan`` and its like, ``all``, ``any``."""

MAGNITUDE, CLEARED = "AbsFunctor<", "Memset"
"""What ``isfinite`` and ``isinf`` run before they compare, and some reductions before they begin."""

CHECKING, DISTRIBUTION = frozenset({"aten::allclose", "aten::normal"}), "torch/distributions/distribution.py"
"""Ops that make a condition of more than comparisons, and the file whose checks do."""

KINDS = {
    "l": LOGIC,
    "a": compile_later(MAGNITUDE),
    "s": compile_later("sum_functor"),
    "p": compile_later(r"CUDAFunctor\w*_add<"),
    "m": compile_later("MulFunctor"),
    "r": compile_later("remainder_kernel"),
    "x": EXTREMES,
}
"""A letter for each kind of kernel in a check."""

CHECKS = compile_later("l+r|l{3,4}apsll|l{4,5}slll|lx|l{6}(?:al|la)appaml")
"""The kernels of a check that hold more than comparisons, the last first: whole numbers, a simplex, one-hot vectors,
the standard deviations of ``normal``, and ``allclose``."""

LONGEST = 28
"""Launches of the longest check, at most: 14 kernels, before each of which something may be cleared."""


def without_conditions(study: Study, hit: Hit) -> Edits:
    """The edits by which truth values that a finding's copies bring to the host are not made either.

    A condition that nobody reads is of no use: the fix takes out the comparison with the read. Only kernels right
    before the copy of one byte count, so what else the program does with them does not come first.
    """
    copies = study.copies(hit)[0]
    read = study.program.items_of(copies.launch[(copies.bytes == 1) & (copies.direction == "DtoH")])
    edits: Edits = {}
    if not (read >= 0).any():
        return edits
    pre, checks = study.program.items.pre, _checks(study, hit)
    for copy in read[read >= 0].tolist():
        made = (_checked_for(study, copy) if copy in checks else []) or _made_for(study, copy)
        for item in [copy, *made[:-1]] if made else []:
            edits[item] = Edit(pre=0.0 if pre[item] <= DISPATCH else 1.0, own=0.0, gone=True, free=True)
        edits |= {item: Edit(pre=without_dispatch(study, item), own=0.0, gone=True, free=True) for item in made[-1:]}
    return edits


def _checks(study: Study, hit: Hit) -> frozenset[int]:
    """The items of the copies of a finding that bring what an op or a distribution checks."""
    waits = study.timeline.waits.take(sorted(hit.waits))
    waits = waits.take(waits.copy >= 0)
    at = hit.finding.at
    if at is None or not at.file.endswith(DISTRIBUTION):
        waits = waits.take(matching(waits, lambda ops: not CHECKING.isdisjoint(ops)))
    return frozenset(study.items(study.timeline.copies.launch[waits.copy]))


def _checked_for(study: Study, copy: int) -> list[int]:
    """The launches of a check before its copy, the last first; nothing where they are others than those of its code."""
    before = list(itertools.islice(launches_before(study, copy), LONGEST))
    kernels = [item for item in before if not study.names[item].startswith(CLEARED)]
    check = CHECKS.match("".join(_letter(study.names[item]) for item in kernels))
    return before[: before.index(kernels[check.end() - 1]) + 1] if check else []


def _letter(name: str) -> str:
    return next((letter for letter, kind in KINDS.items() if kind.search(name)), "-")


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
