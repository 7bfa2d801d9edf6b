"""What else goes when an op is told the range of its input: the kernels by which it finds the least and the greatest.

``one_hot`` without a number of classes looks for the greatest label, ``bincount`` for both, whatever its ``minlength``,
and ``histc`` without bounds too. Each reads what it found. Told the number, they neither look nor read; the maximum
that a program makes and reads itself stays.
"""

from __future__ import annotations

from collections.abc import Iterator

from syncscope.estimate.dispatch import DISPATCH, without_dispatch
from syncscope.estimate.edits import Edit, Edits
from syncscope.estimate.study import Study
from syncscope.patterns import compile_later
from syncscope.rules import Hit

LOOKING = frozenset({"aten::one_hot", "aten::bincount", "aten::histc"})
"""Ops that look for the range of their input where they are not told it."""

EXTREMES = compile_later(r"reduce_kernel<.*\bM(?:in|ax)\w*(?:Functor|Ops)\b")
"""Kernels of PyTorch that find the least or the greatest value, or both, but not where it is."""


def without_extremes(study: Study, hit: Hit) -> Edits:
    """The edits by which the ops of a finding's waits find no least and greatest value."""
    edits: Edits = {}
    pre = study.program.items.pre
    for copy in _reads(study, hit):
        found = _found_for(study, copy)
        if found >= 0:
            # From the one to the other there is nothing but the op itself.
            edits[copy] = Edit(pre=0.0 if pre[copy] <= DISPATCH else 1.0, own=0.0, gone=True, free=True)
            edits[found] = Edit(pre=without_dispatch(study, found), own=0.0, gone=True, free=True)
    return edits


def _reads(study: Study, hit: Hit) -> list[int]:
    """The items of the copies that the ops which look for a range read."""
    waits, launch = study.timeline.waits, study.timeline.copies.launch
    mine = (row for row in sorted(hit.waits) if waits.copy[row] >= 0 and LOOKING.intersection(waits.ops[row]))
    return study.items(launch[[waits.copy[row] for row in mine]])


def _found_for(study: Study, copy: int) -> int:
    """The launch right before a copy that finds what it brings; −1 for another."""
    before = next(launches_before(study, copy), -1)
    return before if before >= 0 and EXTREMES.search(study.names[before]) else -1


def launches_before(study: Study, copy: int) -> Iterator[int]:
    """The launches of the same thread and step before a copy, up to a wait, the last first."""
    items = study.program.items
    for item in range(copy - 1, -1, -1):
        if items.step[item] != items.step[copy] or items.mark[item]:
            return
        if items.chain[item] == items.chain[copy]:
            if items.wait[item]:
                return
            if items.stream[item] >= 0:
                yield item
