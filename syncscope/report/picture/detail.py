"""Draw fewer bars than events: merge small neighbours of one kind into one bar that has their number."""

from __future__ import annotations

import numpy as np

from syncscope.report.picture.rows import Rows
from syncscope.timeline.intervals import Bools, Ints

FINEST = 128
"""Nanoseconds; the cells of the first coarser level. Each level doubles them."""


class Bars(Rows):
    """Rows that stand for one or more events. Name, size and links are those of the longest event."""

    key: Ints
    merged: Ints
    """How many events."""
    busy: Ints
    """Nanoseconds in use."""


def merge_rows(rows: Rows, key: Ints, series: Ints, near: Bools, most: int) -> tuple[Bars, Ints]:
    """At most about ``most`` bars for ``rows``, and for each of ``rows`` (n,) the number of its bar.

    Only rows of equal ``key`` (n,) share a bar, and those that are ``near`` (n,) have one of their own. Bars are in
    order of ``series`` (n,), of which each has keys of its own, then ``ts``. There are never fewer of them than keys,
    nor than rows that are ``near``.
    """
    order = np.lexsort((rows.ts, key))
    first = _groups(rows.ts[order], rows.end[order], key[order], near[order], most)
    starts = np.flatnonzero(first)
    place = np.lexsort((rows.ts[order[starts]], series[order[starts]]))
    moved = np.empty(len(place), dtype=np.int64)
    moved[place] = np.arange(len(place))
    number = np.empty(len(rows), dtype=np.int64)
    number[order] = moved[np.cumsum(first) - 1]
    if len(starts) == len(rows):
        return _alone(rows, order[place], key), number
    return _bars(rows, order, key, starts, place), number


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


def _alone(rows: Rows, order: Ints, key: Ints) -> Bars:
    """The bars of ``rows`` in ``order``, one for each."""
    columns = vars(rows.take(order))
    one = np.ones(len(rows), dtype=np.int64)
    return Bars(**columns, key=key[order], merged=one, busy=columns["end"] - columns["ts"])


def _bars(rows: Rows, order: Ints, key: Ints, starts: Ints, place: Ints) -> Bars:
    """The bars of ``rows`` in ``order``, of which those at ``starts`` begin a group; groups in the order ``place``."""
    end, size = rows.end[order], rows.bytes[order]
    dur = end - rows.ts[order]
    merged = np.diff(np.append(starts, len(rows)))
    # The longest of each group lends its columns; groups lie side by side, so it is the last of each when sorted.
    longest = np.lexsort((dur, np.repeat(np.arange(len(starts)), merged)))[starts + merged - 1]
    known = np.maximum.reduceat(size, starts) >= 0
    columns = {
        **vars(rows.take(order[longest[place]])),
        "ts": rows.ts[order[starts[place]]],
        "end": np.maximum.reduceat(end, starts)[place],
        "bytes": np.where(known, np.add.reduceat(np.maximum(size, 0), starts), -1)[place],
    }
    busy = np.add.reduceat(dur, starts)[place]
    return Bars(**columns, key=key[order[starts[place]]], merged=merged[place], busy=busy)
