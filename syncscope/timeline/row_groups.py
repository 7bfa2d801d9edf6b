"""Number rows by what they have in common."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from syncscope.timeline.intervals import Bools, Ints

if TYPE_CHECKING:
    from syncscope.timeline.tables import Objects  # whose tables number their texts

DENSE = 4
"""Values that lie among so many numbers for each row, at most, are counted and not sorted."""


def number_groups(*columns: Ints | Objects) -> Ints:
    """For each row (n,) a number, the same for rows that are equal in all columns. Numbers follow the order of the
    values, of the first column first."""
    group, many = np.zeros(len(columns[0]), dtype=np.int64), 1
    for column in columns:
        value, values = _rank_texts(cast("Objects", column)) if column.dtype == object else rank(cast("Ints", column))
        group, many = (value, values) if many == 1 else rank(group * values + value)
    return group


def rank(values: Ints) -> tuple[Ints, int]:
    """For each value (n,) its place among the different ones in order, and how many different ones there are."""
    if not len(values):
        return values, 0
    low, high = int(values.min()), int(values.max())
    if high - low > DENSE * len(values):
        known, place = np.unique(values, return_inverse=True)
        return place.astype(np.int64, copy=False), len(known)
    there = np.zeros(high - low + 1, dtype=bool)  # many times faster than sorting
    there[values - low] = True
    place = np.cumsum(there) - 1
    return place[values - low], int(place[-1]) + 1


def number_texts(texts: Objects) -> tuple[Ints, list[Any]]:
    """For each text (n,) its number in order of first appearance, and the texts by number."""
    known: dict[Any, int] = _Numbers()
    return np.fromiter(map(known.__getitem__, texts.tolist()), np.int64, len(texts)), list(known)


def passing(texts: Objects, test: Callable[[str], object]) -> Bools:
    """Which texts (n,) pass a test. Each different one is tested once."""
    number, known = number_texts(texts)
    return np.array([bool(test(text)) for text in known], dtype=bool)[number]


def _rank_texts(texts: Objects) -> tuple[Ints, int]:
    number, known = number_texts(texts)
    place = np.empty(len(known), dtype=np.int64)
    place[sorted(range(len(known)), key=known.__getitem__)] = np.arange(len(known))
    return place[number], len(known)


class _Numbers(dict[Any, int]):
    """Numbers the keys in order of first appearance."""

    def __missing__(self, key: Any) -> int:
        number = self[key] = len(self)
        return number


def number_in_group(group: Ints) -> Ints:
    """For each row (n,) how many rows of its group lie before it."""
    order = np.argsort(group, kind="stable")
    sizes = np.bincount(group)
    number = np.empty(len(group), dtype=np.int64)
    number[order] = np.arange(len(group)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    return number


def group_rows(group: Ints) -> list[Ints]:
    """The rows of each group, in order of the groups' numbers."""
    order = np.argsort(group, kind="stable")
    ends = [*(np.flatnonzero(np.diff(group[order])) + 1).tolist(), len(order)]
    return [order[begin:end] for begin, end in pairwise([0, *ends]) if begin < end]  # a third of np.split's time
