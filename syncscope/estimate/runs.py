"""Stretches of a program without waits. Each is summed up in advance, so that a replay takes it as one item.

A stretch of launches by one chain of host work on one stream does two things: it takes the host some work, and the
stream is done at the later of two times, its earlier end plus all activities, or the launch that held it up most plus
what follows that one. Both are sums along the stretch, so they need no walk through it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from syncscope.estimate.edits import TimingChange
from syncscope.estimate.items import Items
from syncscope.timeline.intervals import Bools, Floats, Ints
from syncscope.timeline.row_groups import rank

LONGEST = 32
"""The most items of a stretch. Places in the launch queue are counted by stretches."""

AT_ONCE = 1 << 16
"""Items of changed stretches that are summed at a time, each as often as questions change its stretch."""

OUTLASTS = 16.0
"""An activity that lasts this many times the mean of its stream is no part of a stretch, since it fills the queue."""


class Edited(NamedTuple):
    """A stretch as the questions that change it have it; times in ns."""

    questions: Ints
    work: Floats
    """(questions, scales), as ``behind``."""
    busy: Floats
    """(questions, 1)."""
    behind: Floats


@dataclass(slots=True, eq=False)
class Run:
    """One stretch, as it was; times in ns. Nothing changes it: it is not frozen since that makes it slower to make,
    and there are many."""

    chain: int
    stream: int
    """−1 when it launches nothing."""
    launches: int
    alone: bool
    work: float
    """The host's work at scale 1."""
    busy: float
    """Activities and the gaps before them."""
    behind: Floats
    """From the host's begin of the stretch to the stream's end, when a launch holds the stream up (scales,)."""
    edited: Edited | None
    """``None`` where no question changes anything in it."""
    wide: tuple[Floats, Floats | float, Floats] | None = None
    """``work``, ``busy`` and ``behind`` in the columns of a replay, where those stay the same."""


Step = list["Run | int"]
"""What happens in a step: stretches, and the numbers of items that stand by themselves."""


def find_runs(
    items: Items, apart: Bools, changes: Sequence[TimingChange], scales: Floats, wanted: Collection[int]
) -> list[Step]:
    """The steps, empty where they are not ``wanted``. ``apart`` (n,) are the items that stand by themselves; ``scales``
    are those of the host's work."""
    first = _begins(items, apart)
    starts = np.flatnonzero(first)
    work, busy, behind = _Parts(items, np.arange(len(items)), starts).sums(scales)
    changed = _changed(items, apart, starts, changes, scales)
    runs = map(
        Run,
        items.chain[starts].tolist(),
        np.maximum.reduceat(items.stream, starts).tolist(),
        np.add.reduceat((items.stream >= 0).astype(np.int64), starts).tolist(),
        np.logical_or.reduceat(items.alone, starts).tolist(),
        work.tolist(), busy.tolist(), behind, map(changed.get, range(len(starts))),
    )  # fmt: skip
    steps: list[Step] = [[] for _ in range(int(items.step.max()) + 1)]
    numbered = zip(items.step[starts].tolist(), apart[starts].tolist(), starts.tolist(), runs, strict=True)
    for step, single, item, run in numbered:
        if step in wanted:
            steps[step].append(item if single else run)
    return steps


def _changed(
    items: Items, apart: Bools, starts: Ints, changes: Sequence[TimingChange], scales: Floats
) -> dict[int, Edited]:
    """The stretches that a question changes, by number, as those questions have them."""
    question = np.repeat(np.arange(len(changes)), [len(change.items) for change in changes])
    if not len(question):
        return {}
    item, pre, own, gap = (
        np.concatenate([getattr(change, name) for change in changes]) for name in ("items", "pre", "own", "gap")
    )
    inside = ~apart[item]
    item, question, shares = item[inside], question[inside], [pre[inside], own[inside], gap[inside]]
    sizes = np.diff(starts, append=len(items))
    run = np.repeat(np.arange(len(starts)), sizes)[item]
    # A pair is a stretch and a question that changes it; stretch by stretch.
    of_pair, many = rank(run * len(changes) + question)
    pairs = np.empty(many, dtype=np.int64)
    pairs[of_pair] = run * len(changes) + question
    runs, asking = np.divmod(pairs, len(changes))
    lengths = sizes[runs]
    begins = np.append(0, np.cumsum(lengths))
    changed = begins[of_pair] + item - starts[runs[of_pair]]
    if not len(pairs):
        return {}
    parts = []
    for first, last in _chunks(begins):
        offsets = begins[first:last] - begins[first]
        rows = np.arange(begins[last] - begins[first]) + np.repeat(
            starts[runs[first:last]] - offsets, lengths[first:last]
        )
        mine = (changed >= begins[first]) & (changed < begins[last])
        edits = (changed[mine] - begins[first], *(share[mine] for share in shares))
        parts.append(_Parts(items, rows, offsets, edits).sums(scales))
    work, busy, behind = (np.concatenate(columns) for columns in zip(*parts, strict=True))
    numbers, at = np.unique(runs, return_index=True)
    spans = zip(numbers.tolist(), at.tolist(), np.append(at[1:], len(runs)).tolist(), strict=True)
    across = work[:, None] * scales
    return {
        number: Edited(asking[begin:end], across[begin:end], busy[begin:end, None], behind[begin:end])
        for number, begin, end in spans
    }


def _chunks(begins: Ints) -> Iterator[tuple[int, int]]:
    """Consecutive pairs of ``AT_ONCE`` items or a little more: the number of the first, and of the one behind the last.
    The items of pair n begin at ``begins[n]``."""
    first, many = 0, len(begins) - 1
    while first < many:
        last = min(int(np.searchsorted(begins, begins[first] + AT_ONCE)), many)
        yield first, last
        first = last


class _Parts:
    """Some stretches, one behind the other, as they are or as a question has them; times (items,)."""

    def __init__(
        self, items: Items, rows: Ints, starts: Ints, edits: tuple[Ints, Floats, Floats, Floats] | None = None
    ) -> None:
        """Stretches of the ``rows`` of items that begin at ``starts`` among them. ``edits`` are places among the rows,
        and what is left there of the host's work before and inside the call, and of the gap."""
        self._starts, self._last = starts, np.append(starts[1:], len(rows)) - 1
        pre, own, gap, lat, dur = (getattr(items, name)[rows] for name in ("pre", "own", "gap", "lat", "dur"))
        if edits is not None:
            place, *left = edits
            pre[place] *= left[0]
            own[place] *= left[1]
            gap[place] = np.minimum(gap[place], left[2])
        self._launched = (items.stream >= 0)[rows]
        self._work = pre + own
        self._busy = np.where(self._launched, dur + gap, 0.0)
        self._tail = lat + dur

    def sums(self, scales: Floats) -> tuple[Floats, Floats, Floats]:
        """The host's work at scale 1, the stream's, both (stretches,), and what is behind (stretches, scales)."""
        # Running sums; a stretch is the difference of two of them.
        hosts, busy = np.cumsum(self._work), np.cumsum(self._busy)
        hosts_before, busy_before = (hosts - self._work)[self._starts], (busy - self._busy)[self._starts]
        tail = np.where(self._launched, self._tail - busy, -np.inf)
        most = [np.maximum.reduceat(hosts * scale + tail, self._starts) for scale in scales]
        behind = np.stack(most, axis=-1) + (busy[self._last][:, None] - hosts_before[:, None] * scales)
        return hosts[self._last] - hosts_before, busy[self._last] - busy_before, behind


def _begins(items: Items, apart: Bools) -> Bools:
    """Which items begin a stretch: those apart and what follows them, those that outlast others and what follows them,
    another chain, stream or sharing, a new step."""
    group = items.stream + 1
    mean = np.bincount(group, weights=items.dur) / np.maximum(np.bincount(group), 1)
    long = items.dur > OUTLASTS * mean[group]
    # What launches nothing belongs to the launch that comes next.
    number = np.arange(len(items))
    launches = np.where(items.stream >= 0, number, len(items))
    coming = np.minimum.accumulate(launches[::-1])[::-1]
    stream, alone = np.append(items.stream, -1)[coming], np.append(items.alone, False)[coming]
    columns = (items.chain, items.step, stream, alone)
    first = apart | long
    first[1:] |= first[:-1].copy()
    first[0] = True
    for column in columns:
        first[1:] |= column[1:] != column[:-1]
    since = number - np.maximum.accumulate(np.where(first, number, 0))
    begins: Bools = first | (since % LONGEST == 0)
    return begins
