"""What else goes when a boolean mask keeps its shape: the kernels that count it and make indices of it.

``x[mask]`` counts the mask, reads the count, and writes the indices of what it picks. The backward pass counts the mask
again, sorts the indices and adds gradients up by them; that of ``x[mask.nonzero()]`` has the indices and only sorts.
``torch.where`` does none of it: it runs one kernel where the other picks, and one in the backward. Without a backward,
a mask may be a filter, after which less is to be done.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import takewhile
from typing import NamedTuple

import numpy as np

from syncscope.estimate.dispatch import to_usual_dispatch, without_dispatch
from syncscope.estimate.edits import Edit, Edits
from syncscope.estimate.items import TO_HOST
from syncscope.estimate.study import Study
from syncscope.patterns import compile_later

COUNTS = compile_later(r"cub::.*DeviceReduce")
"""Kernels that count what a mask picks, before the read of the count."""

INDEXES = compile_later(r"cub::.*Device(?:Compact|Select)|write_indices")
"""Kernels that make its indices, after the read."""

PICKS = compile_later(r"index|gather")
"""The kernel that then picks by them; where another follows, the program uses the indices itself."""

ADDS_UP = "indexing_backward"
"""The last kernel of the backward of picking; the one of ``torch.where`` takes its place."""

PICKED, ADDED = compile_later(r"OpaqueType<(\d+)>"), compile_later(r"indexing_backward\w*<(?:c10::)?(\w+)[,>]")
"""In the names of the kernels that pick: how many bytes a value has; and of those that add up: of what type it is."""

TYPES = {"double": 8, "float": 4, "Half": 2, "BFloat16": 2}
"""How many bytes a gradient of a type has."""

CLEARS = "FillFunctor"
"""The kernel that makes the zeros in which a backward adds gradients up."""

WRAPS = "remainder_kernel"
"""The first kernel that a backward makes ready indices into positions with, to sort them."""

SORT = 24
"""Launches from the indices to ``ADDS_UP``, at most: 14 with a sort of many values."""


class _Picking(NamedTuple):
    """A mask of which indices are made, by items."""

    wait: int
    """−1 for a backward that has the indices."""
    step: int
    whole: list[int]
    """From the first kernel that counts to the last one that makes indices; of a backward, to the one before
    ``ADDS_UP``, from ``WRAPS`` on where it has the indices."""
    backward: bool
    picks: int
    """The kernel that a forward picks by, or a backward adds up with."""
    size: int | None
    """Bytes of a value that it picks or adds up, where its name tells."""


def without_indices(study: Study, waits: Sequence[int]) -> Edits:
    """The edits by which no indices are made of the masks that have a backward and whose counts some ``waits`` read,
    neither there nor in the backward."""
    edits: Edits = {}
    for forward, backward in _pair(_find_pickings(study)):
        if forward.wait in waits:
            for one in (forward, backward):
                edits |= {item: Edit(pre=0.0, own=0.0, free=True, gone=True) for item in one.whole}
                # One op takes the place of those from here to the last kernel, which stays with its dispatch: in a
                # backward that of the first, since it is one op from there on.
                left = 1.0 if one.backward else without_dispatch(study, one.whole[0])
                edits[one.whole[0]] = Edit(pre=left, own=0.0, free=True, gone=True)
                if not one.backward:
                    edits[one.picks] = Edit(pre=to_usual_dispatch(study, one.picks))
    return edits


def _pair(every: list[_Picking]) -> Iterator[tuple[_Picking, _Picking]]:
    """Each forward with its backward, the first with the last. None in steps that do not have one for each, but for
    forwards that pick what no backward adds up, as labels: which masks have none is not known there."""
    for step in dict.fromkeys(one.step for one in every):
        mine = [one for one in every if one.step == step]
        backwards = [one for one in reversed(mine) if one.backward]
        sizes = {one.size for one in backwards}
        forwards = [one for one in mine if not one.backward and _may_have_one(one.size, sizes)]
        if len(backwards) == len(forwards):
            yield from zip(forwards, backwards, strict=True)


def _may_have_one(size: int | None, sizes: set[int | None]) -> bool:
    """Whether what picks values of a ``size`` may have one of the backwards that add up values of some ``sizes``."""
    return size is None or None in sizes or size in sizes


def _find_pickings(study: Study) -> list[_Picking]:
    """All masks in the steps by whose indices something is picked, in order."""
    found: list[_Picking] = []
    for wait in study.items(study.timeline.waits.call):
        before = list(_counting(study, wait))
        after = list(_indexing(study, wait)) if before else []
        if after:
            between = _until_picked(study, after[-1])
            if between is not None:
                whole = [*before[::-1], wait, *after, *between]
                found.append(_picking(study, wait, whole, bool(between)))
    known = {item for one in found if one.backward for item in one.whole}
    for item in _adding_up(study):
        if (before := _sorting(study, item)) and before[0] not in known:
            found.append(_picking(study, -1, before, backward=True))
    return sorted(found, key=lambda one: one.whole[0])


def _picking(study: Study, wait: int, whole: list[int], backward: bool) -> _Picking:
    """A forward with the kernel that it picks by, or a backward with the zeros that it adds gradients up in."""
    items = study.program.items
    step = int(items.step[whole[0]])
    picks = next(item for item in _around(study, whole[-1], 1) if items.stream[item] >= 0)
    size = _size(study.names[picks])
    if not backward:
        return _Picking(wait, step, whole, backward, picks, size)
    before = [item for item in _around(study, whole[0], -1) if items.chain[item] == items.chain[whole[0]]]
    clears = next((place for place, item in enumerate(before) if items.stream[item] >= 0), None)
    if clears is not None and CLEARS in study.names[before[clears]]:
        whole = [*before[clears::-1], *whole]
    return _Picking(wait, step, whole, backward, picks, size)


def _size(name: str) -> int | None:
    """Bytes of a value that a kernel picks or adds up; ``None`` where its name does not tell."""
    picked, added = PICKED.search(name), ADDED.search(name)
    if picked:
        return int(picked[1])
    return TYPES.get(added[1]) if added else None


def _adding_up(study: Study) -> list[int]:
    """The items of the last kernels of backwards of picking."""
    items = study.program.items
    return [item for item in np.flatnonzero(items.kernel).tolist() if ADDS_UP in study.names[item]]


def _sorting(study: Study, adds_up: int) -> list[int]:
    """What a backward with the indices does with them before it adds gradients up, in order; nothing for another."""
    items, launches = study.program.items, 0
    found: list[int] = []
    for item in _around(study, adds_up, -1):
        if items.chain[item] != items.chain[adds_up] or launches > SORT or ADDS_UP in study.names[item]:
            break
        found.append(item)
        if WRAPS in study.names[item]:
            return found[::-1]
        launches += bool(items.stream[item] >= 0)
    return []


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
