"""Stretches of a program without waits. Each is summed up in advance, so that a replay takes it as one item.

A stretch of launches by one chain of host work on one stream does two things: it takes the host some work, and the
stream is done at the later of two times, its earlier end plus all activities, or the launch that held it up most plus
what follows that one. Both are sums along the stretch, so they need no walk through it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from functools import cached_property
from typing import NamedTuple

import msgspec
import numpy as np

from syncscope.estimate.edits import TimingChange
from syncscope.estimate.items import Items
from syncscope.timeline.intervals import Bools, Floats, Ints
from syncscope.timeline.row_groups import rank

LONGEST = 32
"""The most items of a stretch. Places in the launch queue are counted by stretches."""

FEW_LAUNCHES = 960
"""A block ends once it has so many launches, so it has fewer than ``FEW_LAUNCHES + LONGEST``: no launch of one waits
for another of the same in the launch queue."""

AT_ONCE = 1 << 16
"""Items of changed stretches that are summed at a time, each as often as questions change its stretch."""

OUTLASTS = 16.0
"""An activity that lasts this many times the mean of its stream is no part of a stretch, since it fills the queue."""


class Edited(NamedTuple):
    """Stretches as questions have them that change them: one row for each stretch and question, stretch by stretch."""

    stretch: Ints
    question: Ints
    work: Floats
    """ns, as all that follows; (rows, scales), as ``behind``."""
    busy: Floats
    """(rows, 1)."""
    behind: Floats

    def take(self, number: Ints) -> Edited:
        """Those of the stretches that have a ``number`` (stretches,), by it; −1 for none."""
        stretch = number[self.stretch]
        kept = stretch >= 0
        return Edited._make((stretch[kept], *(column[kept] for column in self[1:])))


class Stretches(msgspec.Struct, frozen=True, eq=False, dict=True):
    """The stretches of some steps, as they were; times in ns."""

    first: Ints
    """The first item of each."""
    launches: list[int]
    work: Floats
    """The host's work at scale 1 (stretches,)."""
    busy: Floats
    """Activities and the gaps before them (stretches,)."""
    behind: Floats
    """From the host's begin of the stretch to the stream's end, when a launch holds the stream up (stretches,
    scales)."""
    edited: Edited | None
    """``None`` where no question changes anything in them."""

    def questions(self, number: int) -> list[int]:
        """The questions that change a stretch."""
        if self.edited is None:
            return []
        asking: list[int] = self.edited.question[self._edits[number] : self._edits[number + 1]].tolist()
        return asking

    def wide(self, begin: int, end: int, scale: Floats, scenario: Ints, slot: Ints) -> tuple[Floats, Floats, Floats]:
        """``work``, ``busy`` and ``behind`` of the stretches from ``begin`` to before ``end``, each (stretches,
        columns), or of ``busy`` one column for all. ``scale`` and ``scenario`` (columns,) are those of the columns, and
        ``slot`` is that of each question."""
        work, busy = self.work[begin:end, None] * scale, self.busy[begin:end, None]
        behind = self.behind[begin:end, scenario]
        if self.edited is None or self._edits[begin] == self._edits[end]:
            return work, busy, behind
        busy = np.repeat(busy, len(scale), axis=1)
        rows = slice(self._edits[begin], self._edits[end])
        where = self.edited.stretch[rows] - begin, slot[self.edited.question[rows]]
        for columns, own in zip((work, busy, behind), self.edited[2:], strict=True):
            columns.reshape(len(columns), -1, self.behind.shape[1])[where] = own[rows]
        return work, busy, behind

    @cached_property
    def _edits(self) -> list[int]:
        """For each stretch where its rows of ``edited`` begin, and where the last ones end."""
        assert self.edited is not None
        rows: list[int] = np.searchsorted(self.edited.stretch, np.arange(len(self.work) + 1)).tolist()
        return rows


class Block(NamedTuple):
    """Stretches of one chain on one stream that follow each other: from ``begin`` to the one before ``end``."""

    begin: int
    end: int
    chain: int
    stream: int
    """−1 when they launch nothing; else some of them may, too."""
    exclusive: bool
    """They and what other streams compute wait for each other."""


Step = list["Block | int"]
"""What happens in a step: stretches, and the numbers of items that stand by themselves."""


def find_runs(
    items: Items,
    special: tuple[Bools, Bools],
    changes: Sequence[TimingChange],
    scales: Floats,
    wanted: Collection[int],
    shared: bool,
) -> tuple[list[Step], Stretches]:
    """The steps, empty where they are not ``wanted``, and their stretches. ``special`` (n,) are the items that stand by
    themselves, and those that are a stretch each; ``scales`` are those of the host's work. Streams that compute alone
    wait for each other where they are ``shared``."""
    apart, ends = special
    starts = np.flatnonzero(_begins(items, apart | ends))
    work, busy, behind = _Parts(items, np.arange(len(items)), starts).sums(scales)
    edited = _changed(items, apart, starts, changes, scales)
    step, single, stream = items.step[starts], apart[starts], np.maximum.reduceat(items.stream, starts)
    launches = np.add.reduceat((items.stream >= 0).astype(np.int64), starts)
    exclusive = np.logical_or.reduceat(items.alone, starts) & shared
    chain = items.chain[starts]
    beside = _launching_beside(stream, (single, step, chain))
    kept = np.flatnonzero(np.isin(step, sorted(wanted)))
    columns = [column[kept] for column in (step, chain, stream[beside], exclusive[beside])]
    steps = _find_steps(single[kept], starts[kept], launches[kept], columns)
    kept = kept[~single[kept]]
    if edited is not None:
        number = np.full(len(starts), -1)
        number[kept] = np.arange(len(kept))
        edited = edited.take(number)
    return steps, Stretches(starts[kept], launches[kept].tolist(), work[kept], busy[kept], behind[kept], edited)


def _differs(columns: Sequence[Ints | Bools]) -> Bools:
    """Which stretches differ from the one before in some of the ``columns`` (stretches,)."""
    first = np.zeros(len(columns[0]), dtype=bool)
    first[:1] = True
    for column in columns:
        first[1:] |= column[1:] != column[:-1]
    return first


def _launching_beside(stream: Ints, alike: Sequence[Ints | Bools]) -> Ints:
    """For each stretch the one beside which it runs: itself, or where it launches nothing on a ``stream`` the last one
    before it that does, else the first one behind it, as long as all between are ``alike`` (columns, by stretch)."""
    place, many = np.arange(len(stream)), len(stream)
    part = np.cumsum(_differs(alike))
    launching = stream >= 0
    before = np.maximum.accumulate(np.where(launching, place, -1))
    behind = np.minimum.accumulate(np.where(launching, place, many)[::-1])[::-1]
    found = place.copy()
    for near in (behind, before):
        inside = np.clip(near, 0, max(many - 1, 0))
        mine = (near == inside) & (part[inside] == part)
        found[mine] = near[mine]
    return found


def _find_steps(single: Bools, starts: Ints, launches: Ints, columns: Sequence[Ints | Bools]) -> list[Step]:
    """The steps of stretches and of ``single`` items, which begin at ``starts``. ``columns`` are their step, chain and
    stream, and whether they are exclusive."""
    first = single | _differs((single, *columns))
    place = np.arange(len(first))
    before = np.cumsum(launches) - launches
    part = (before - before[np.maximum.accumulate(np.where(first, place, 0))]) // FEW_LAUNCHES
    first[1:] |= part[1:] != part[:-1]
    begins = np.flatnonzero(first)
    number = np.append(0, np.cumsum(~single))[np.append(begins, len(first))]
    step, *alike = (column[begins].tolist() for column in columns)
    blocks = map(Block, number[:-1].tolist(), number[1:].tolist(), *alike)
    steps: list[Step] = [[] for _ in range(max(step, default=-1) + 1)]
    for at, alone, item, block in zip(step, single[begins].tolist(), starts[begins].tolist(), blocks, strict=True):
        steps[at].append(item if alone else block)
    return steps


def _changed(
    items: Items, apart: Bools, starts: Ints, changes: Sequence[TimingChange], scales: Floats
) -> Edited | None:
    """The stretches that questions change, by number, as those questions have them."""
    question = np.repeat(np.arange(len(changes)), [len(change.items) for change in changes])
    if not len(question):
        return None
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
        return None
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
    return Edited(runs, asking, work[:, None] * scales, busy[:, None], behind)


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
