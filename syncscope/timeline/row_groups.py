"""Number rows by what they have in common."""

from __future__ import annotations

import numpy as np
import pandas as pd

from syncscope.timeline.intervals import Ints
from syncscope.timeline.tables import Objects


def number_groups(*columns: Ints | Objects) -> Ints:
    """For each row (n,) a number, the same for rows that are equal in all columns. Numbers follow the order of the
    values, of the first column first."""
    # Hashing is several times faster than numpy's sorting, for texts most of all.
    group = np.zeros(len(columns[0]), dtype=np.int64)
    for column in columns:
        value, values = pd.factorize(column, sort=True)
        group = pd.factorize(group * max(len(values), 1) + value, sort=True)[0].astype(np.int64)
    return group


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
    return [rows for rows in np.split(order, np.flatnonzero(np.diff(group[order])) + 1) if len(rows)]
