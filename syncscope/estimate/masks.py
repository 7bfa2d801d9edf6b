"""What else goes when a boolean mask keeps its shape: the kernels that count it and make indices of it.

``x[mask]`` counts the mask, reads the count, and writes the indices of what it picks. The backward pass counts the mask
again, sorts the indices and adds gradients up by them. ``torch.where`` does none of it: it runs one kernel where the
other picks, and one in the backward. Without a backward, a mask may be a filter, after which less is to be done.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import takewhile
from typing import NamedTuple

from syncscope.estimate.edits import Edit, Edits
from syncscope.estimate.items import TO_HOST
from syncscope.estimate.study import Study

COUNTS = re.compile(r"cub::.*DeviceReduce")
"""Kernels that count what a mask picks, before the read of the count."""

INDEXES = re.compile(r"cub::.*Device(?:Compact|Select)|write_indices")
"""Kernels that make its indices, after the read."""

PICKS = re.compile(r"index|gather")
"""The kernel that then picks by them; where another follows, the program uses the indices itself."""

ADDS_UP = "indexing_backward"
"""The last kernel of the backward of picking; the one of ``torch.where`` takes its place."""

SORT = 24
"""Launches from the indices to ``ADDS_UP``, at most: 14 with a sort of many values."""


class _Picking(NamedTuple):
    """A mask of which indices are made, by items."""

    wait: int
    step: int
    before: list[int]
    """From the first kernel that counts to the read, in order."""
    after: list[int]
    """From the read to the last kernel that makes indices; of a backward, to the one before ``ADDS_UP``."""
    backward: bool


def without_indices(study: Study, waits: Sequence[int]) -> Edits:
    """The edits by which no indices are made of the masks that have a backward and whose counts some ``waits`` read,
    neither there nor in the backward."""
    edits: Edits = {}
    for forward, backward in _pair(list(_find_pickings(study))):
        if forward.wait in waits:
            for one in (forward, backward):
                whole = [*one.before, one.wait, *one.after]
                edits |= {item: Edit(pre=0.0, own=0.0, free=True, gone=True) for item in whole}
                edits[whole[0]] = Edit(own=0.0, free=True, gone=True)
    return edits


def _pair(every: list[_Picking]) -> Iterator[tuple[_Picking, _Picking]]:
    """Each forward with its backward, the first with the last. None in steps that do not have one for each: which
    masks have none is not known there."""
    for step in dict.fromkeys(one.step for one in every):
        mine = [one for one in every if one.step == step]
        forwards = [one for one in mine if not one.backward]
        backwards = [one for one in reversed(mine) if one.backward]
        if len(backwards) == len(forwards):
            yield from zip(forwards, backwards, strict=True)


def _find_pickings(study: Study) -> Iterator[_Picking]:
    """All masks in the steps by whose indices something is picked, in order."""
    items = study.program.items
    for wait in study.items(study.timeline.waits.call):
        before = list(_counting(study, wait))
        after = list(_indexing(study, wait)) if before else []
        if after:
            between = _until_picked(study, after[-1])
            if between is not None:
                yield _Picking(wait, int(items.step[wait]), before[::-1], [*after, *between], bool(between))


def _around(study: Study, item: int, way: int) -> Iterator[int]:
    """The items of the same step and chain before (−1) or after an item, up to the next wait."""
    items = study.program.items
    every = range(item + way, len(items) if way > 0 else -1, way)
    return takewhile(lambda other: not (items.mark[other] or items.wait[other]), every)


def _counting(study: Study, wait: int) -> list[int]:
    """The read that a wait completes, and what comes before it from the first kernel that counts, the last first;
    nothing for another read."""
    items, last = study.program.items, 0
    found: list[int] = []
    for item in _around(study, wait, -1):
        counts = bool(COUNTS.search(study.names[item]))
        if items.chain[item] != items.chain[wait] or (items.stream[item] >= 0 and not counts and found):
            break
        if not found and items.engine[item] != TO_HOST:
            if items.stream[item] >= 0:
                break
            continue
        found.append(item)
        last = len(found) if counts else last
    return found[:last]


def _indexing(study: Study, wait: int) -> list[int]:
    """What comes after a wait, to the last kernel that makes indices; nothing where none does."""
    items, last = study.program.items, 0
    found: list[int] = []
    for item in _around(study, wait, 1):
        makes = bool(INDEXES.search(study.names[item]))
        if items.chain[item] != items.chain[wait] or (items.stream[item] >= 0 and not makes):
            break
        found.append(item)
        last = len(found) if makes else last
    return found[:last]


def _until_picked(study: Study, indexed: int) -> list[int] | None:
    """What a backward does from the indices to the kernel before its last; nothing for a forward, which picks at once;
    ``None`` where the program uses the indices otherwise."""
    items, launches = study.program.items, 0
    found: list[int] = []
    for item in _around(study, indexed, 1):
        if items.stream[item] >= 0:
            if ADDS_UP in study.names[item]:
                return found
            if not launches and PICKS.search(study.names[item]):
                return []
            launches += 1
        if launches > SORT:
            break
        found.append(item)
    return None
