"""Stretches of a program without waits. Each is summed up in advance, so that a replay takes it as one item.

A stretch of launches by one chain of host work on one stream does two things: it takes the host some work, and the
stream is done at the later of two times, its earlier end plus all activities, or the launch that held it up most plus
what follows that one. Both are sums along the stretch, so they need no walk through it.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

import numpy as np

from syncscope.estimate.edits import TimingChange
from syncscope.estimate.items import Items
from syncscope.timeline.intervals import Bools, Floats, Ints

LONGEST = 32
"""The most items of a stretch. Places in the launch queue are counted by stretches."""

AT_ONCE = 1024
"""How many changed stretches are summed at a time. Their tables have a column for each question."""

OUTLASTS = 16.0
"""An activity that lasts this many times the mean of its stream is no part of a stretch, since it fills the queue."""


@dataclass(frozen=True)
class Run:
    """One stretch; times in ns."""

    chain: int
    stream: int
    """−1 when it launches nothing."""
    launches: int
    alone: bool
    changed: bool
    """Whether a question changes something in it: what follows is then (columns,), else a number or (scales,)."""
    work: Floats | float
    """The host's work; at scale 1 where it is one number."""
    busy: Floats | float
    """Activities and the gaps before them."""
    behind: Floats
    """From the host's begin of the stretch to the stream's end, when a launch holds the stream up."""


Step = list["Run | int"]
"""What happens in a step: stretches, and the numbers of items that stand by themselves."""


def find_runs(
    items: Items, apart: Bools, changes: Sequence[TimingChange], scales: Floats, wanted: Collection[int]
) -> list[Step]:
    """The steps, empty where they are not ``wanted``. ``apart`` (n,) are the items that stand by themselves; ``scales``
    are those of the host's work."""
    first = _begins(items, apart)
    starts = np.flatnonzero(first)
    last = np.append(starts[1:], len(items)) - 1
    nothing = _Parts(items, np.arange(len(items)), starts, ()).sums(scales)
    edited = np.zeros(len(items), dtype=bool)
    for change in changes:
        edited[change.items] = True
    changed = np.logical_or.reduceat(edited & ~apart, starts)
    edited_sums = _changed(items, starts, last, np.flatnonzero(changed), changes, scales)
    most = np.maximum.reduceat(items.stream, starts).tolist()
    count = np.add.reduceat((items.stream >= 0).astype(np.int64), starts).tolist()
    alone, changed = np.logical_or.reduceat(items.alone, starts).tolist(), changed.tolist()
    chain, of_step = items.chain[starts].tolist(), items.step[starts].tolist()
    steps: list[Step] = [[] for _ in range(int(items.step.max()) + 1)]
    single = apart[starts].tolist()
    for number, (item, step) in enumerate(zip(starts.tolist(), of_step, strict=True)):
        if step not in wanted:
            continue
        if single[number]:
            steps[step].append(item)
            continue
        work, busy, behind = edited_sums.get(number) or (
            nothing[0][number, 0],
            nothing[1][number, 0],
            nothing[2][number, 0],
        )
        run = Run(
            chain[number], most[number], count[number], alone[number], changed[number], work, busy, behind,
        )  # fmt: skip
        steps[step].append(run)
    return steps


_Sums = tuple[Floats, Floats, Floats]


def _changed(
    items: Items, starts: Ints, last: Ints, runs: Ints, changes: Sequence[TimingChange], scales: Floats
) -> dict[int, _Sums]:
    """``Run.work``, ``busy`` and ``behind`` (columns,) of the ``runs`` that a question changes."""
    sums: dict[int, _Sums] = {}
    for begin in range(0, len(runs), AT_ONCE):
        numbers = runs[begin : begin + AT_ONCE]
        lengths = last[numbers] - starts[numbers] + 1
        inside = np.append(0, np.cumsum(lengths)[:-1])
        rows = np.arange(lengths.sum()) + np.repeat(starts[numbers] - inside, lengths)
        work, busy, behind = _Parts(items, rows, inside, changes).sums(scales)
        across = (
            (work[:, :, None] * scales).reshape(len(numbers), -1),
            np.repeat(busy, len(scales), axis=1),
            behind.reshape(len(numbers), -1),
        )
        sums |= dict(zip(numbers.tolist(), zip(*across, strict=True), strict=True))
    return sums


class _Parts:
    """Some stretches, one behind the other, as each question has them; times (items, questions)."""

    def __init__(self, items: Items, rows: Ints, starts: Ints, changes: Sequence[TimingChange]) -> None:
        """Stretches of the ``rows`` of items, ascending, that begin at ``starts`` among them."""
        self._starts, self._last = starts, np.append(starts[1:], len(rows)) - 1
        shape = (len(rows), max(len(changes), 1))
        named = {name: getattr(items, name)[rows][:, None] for name in ("pre", "own", "gap", "lat", "dur")}
        shares = {"pre": np.ones(shape), "own": np.ones(shape), "gap": np.full(shape, np.inf)}
        for column, change in enumerate(changes):
            place = np.minimum(np.searchsorted(rows, change.items), len(rows) - 1)
            here = rows[place] == change.items
            for name, share in shares.items():
                share[place[here], column] = getattr(change, name)[here]
        self._launched = (items.stream >= 0)[rows][:, None]
        self._work = named["pre"] * shares["pre"] + named["own"] * shares["own"]
        self._busy = np.where(self._launched, named["dur"] + np.minimum(named["gap"], shares["gap"]), 0.0)
        self._tail = named["lat"] + named["dur"]

    def sums(self, scales: Floats) -> _Sums:
        """The host's work at scale 1 (stretches, questions), the stream's (stretches, questions), and what is behind
        (stretches, questions, scales)."""
        # Running sums; a stretch is the difference of two of them.
        hosts, busy = np.cumsum(self._work, axis=0), np.cumsum(self._busy, axis=0)
        hosts_before, busy_before = (hosts - self._work)[self._starts], (busy - self._busy)[self._starts]
        tail = np.where(self._launched, self._tail - busy, -np.inf)
        most = [np.maximum.reduceat(hosts * scale + tail, self._starts, axis=0) for scale in scales]
        behind = np.stack(most, axis=-1) + (busy[self._last][..., None] - hosts_before[..., None] * scales)
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
