"""Fewer bars than events: small neighbours of one kind become one, and say how many they are."""

from __future__ import annotations

import numpy as np
import pandas as pd

from syncscope.timeline.intervals import Bools, Ints

FINEST = 128
"""Nanoseconds; the cells of the first coarser level. Each level doubles them."""


def merged(rows: pd.DataFrame, most: int) -> tuple[pd.DataFrame, Ints]:
    """At most about ``most`` rows in place of ``rows``, and for each of ``rows`` (n,) the one that stands for it.

    ``rows`` has ``ts``, ``end`` (ns), ``bytes`` (−1 none), ``key``: only rows of equal key become one, and ``near``:
    these stay as they are. The result keeps all columns of the longest of those merged, and adds ``merged`` (events)
    and ``busy`` (ns in use). Its order and that of the returned numbers is by ``key``, then ``ts``. There are never
    fewer rows than keys, nor than rows that are ``near``.
    """
    order = np.lexsort((rows["ts"].to_numpy(np.int64), rows["key"].to_numpy(np.int64)))
    table = rows.iloc[order]
    first = _groups(table, most)
    group = np.cumsum(first) - 1
    out = _summed(table, first, group)
    number = np.empty(len(rows), dtype=np.int64)
    number[order] = group
    return out, number


def _groups(table: pd.DataFrame, most: int) -> Bools:
    """Which rows begin a group, at the finest level with at most ``most`` of them."""
    key, ts, end, near = (table[c].to_numpy(np.int64) for c in ("key", "ts", "end", "near"))
    first = np.ones(len(table), dtype=bool)
    if len(table) <= most:
        return first
    apart = (key[1:] != key[:-1]) | near[1:].astype(bool) | near[:-1].astype(bool)
    begin, cell = ts - ts.min(), FINEST
    whole = int(end.max() - ts.min())
    while first.sum() > most:
        # Rows shorter than a cell that begin in the same one belong together, so no bar grows beyond two cells.
        small, slot = end - ts < cell, begin // cell
        joined = small[1:] & small[:-1] & (slot[1:] == slot[:-1]) & ~apart
        first[1:] = ~joined
        if cell > whole:
            break
        cell *= 2
    return first


def _summed(table: pd.DataFrame, first: Bools, group: Ints) -> pd.DataFrame:
    starts = np.flatnonzero(first)
    ts, end, size = (table[c].to_numpy(np.int64) for c in ("ts", "end", "bytes"))
    # The longest of each group lends its columns; groups lie side by side, so it is the last of each when sorted.
    last = np.append(starts, len(table))[1:] - 1
    longest = np.lexsort((end - ts, group))[last]
    known = size >= 0
    found: pd.DataFrame = table.iloc[longest].assign(
        ts=ts[starts],
        end=_reduced(np.maximum, end, starts),
        bytes=np.where(_reduced(np.maximum, size, starts) >= 0, _reduced(np.add, np.where(known, size, 0), starts), -1),
        merged=np.diff(np.append(starts, len(table))),
        busy=_reduced(np.add, end - ts, starts),
    )
    return found


def _reduced(how: np.ufunc, values: Ints, starts: Ints) -> Ints:
    """One value a group; ``reduceat`` refuses when there is none."""
    return how.reduceat(values, starts) if len(starts) else values
