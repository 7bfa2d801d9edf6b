"""Draw fewer bars than events: merge small neighbours of one kind into one bar that has their number."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from syncscope.report.picture.rows import Rows
from syncscope.timeline.intervals import Bools, Ints

FINEST = 128
"""Nanoseconds; the cells of the first coarser level. Each level doubles them."""


@dataclass(frozen=True)
class Bars(Rows):
    """Rows that stand for one or more events. Name, size and links are those of the longest event."""

    key: Ints
    merged: Ints
    """How many events."""
    busy: Ints
    """Nanoseconds in use."""


def merge_rows(rows: Rows, key: Ints, near: Bools, most: int) -> tuple[Bars, Ints]:
    """At most about ``most`` bars for ``rows``, and for each of ``rows`` (n,) the number of its bar.

    Only rows of equal ``key`` (n,) share a bar, and those that are ``near`` (n,) have one of their own. Bars are in
    order of ``key``, then ``ts``. There are never fewer of them than keys, nor than rows that are ``near``.
    """
    order = np.lexsort((rows.ts, key))
    first = _groups(rows.ts[order], rows.end[order], key[order], near[order], most)
    group = np.cumsum(first) - 1
    number = np.empty(len(rows), dtype=np.int64)
    number[order] = group
    return _bars(rows, order, key, first, group), number


def _groups(ts: Ints, end: Ints, key: Ints, near: Bools, most: int) -> Bools:
    """Which rows begin a group, at the finest level with at most ``most`` of them."""
    first = np.ones(len(ts), dtype=bool)
    if len(ts) <= most:
        return first
    apart = (key[1:] != key[:-1]) | near[1:] | near[:-1]
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


def _bars(rows: Rows, order: Ints, key: Ints, first: Bools, group: Ints) -> Bars:
    """The bars of ``rows`` in ``order``, of which ``first`` begin a ``group``."""
    starts = np.flatnonzero(first)
    ts, end, size = rows.ts[order], rows.end[order], rows.bytes[order]
    # The longest of each group lends its columns; groups lie side by side, so it is the last of each when sorted.
    last = np.append(starts, len(rows))[1:] - 1
    longest = np.lexsort((end - ts, group))[last]
    known = size >= 0
    columns = {
        **vars(rows.take(order[longest])),
        "ts": ts[starts],
        "end": _reduced(np.maximum, end, starts),
        "bytes": np.where(
            _reduced(np.maximum, size, starts) >= 0, _reduced(np.add, np.where(known, size, 0), starts), -1
        ),
    }
    merged = np.diff(np.append(starts, len(rows)))
    return Bars(**columns, key=key[order][starts], merged=merged, busy=_reduced(np.add, end - ts, starts))


def _reduced(how: np.ufunc, values: Ints, starts: Ints) -> Ints:
    """One value a group; ``reduceat`` refuses when there is none."""
    return how.reduceat(values, starts) if len(starts) else values
