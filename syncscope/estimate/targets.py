"""What something waits for: a stream, up to an activity or to all that was launched so far."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import pandas as pd

from syncscope.estimate.device import JUST
from syncscope.timeline.intervals import Ints

NOW = -1
"""In place of an item: everything on the stream so far."""

RECENT = 64
"""How many recorded events and launches back a wait may look."""

LONGEST_RETURN = 100_000
"""Nanoseconds between the end of what a wait waited for and its return, at most."""


class Target(NamedTuple):
    """A stream up to what an item launched or recorded, or up to ``NOW``."""

    stream: int
    item: int = NOW


Wanted = dict[int, tuple[Target, ...]]
"""By item, what it waits for: for all of it."""


@dataclass(frozen=True)
class Targets:
    waits: Wanted
    """What the host waits for."""
    holds: Wanted
    """What an activity may not begin before, besides its own stream."""

    def remembered(self, others: Iterable[Target] = ()) -> Wanted:
        """By the item that they name: targets that something asks for later, and ``others``."""
        every = (*self.waits.values(), *self.holds.values(), tuple(others))
        found: Wanted = {}
        for target in dict.fromkeys(target for targets in every for target in targets if target.item != NOW):
            found[target.item] = (*found.get(target.item, ()), target)
        return found


class Streams:
    """The ends of activities in the trace by stream: what had been launched by an item, and when it was done."""

    def __init__(self, found: pd.DataFrame) -> None:
        """``found`` are ``device.ACTIVITIES``."""
        stream, self._ends = found["stream"].to_numpy(np.int64), found["ends"].to_numpy()
        self.all = range(int(stream.max(initial=-1)) + 1)
        self._rows = [np.flatnonzero(stream == number) for number in self.all]
        self._reach = [np.maximum.accumulate(self._ends[rows]) for rows in self._rows]

    def used(self, before: int) -> list[int]:
        """Streams on which something was launched before an item."""
        return [number for number in self.all if len(self._rows[number]) and self._rows[number][0] < before]

    def end(self, target: Target, before: int) -> float:
        """When a target was done, as seen by an item; −inf for nothing."""
        item = before if target.item == NOW else target.item + 1
        slot = int(np.searchsorted(self._rows[target.stream], item)) - 1
        return float(self._reach[target.stream][slot]) if slot >= 0 else -np.inf

    def last_until(self, time: float, before: int) -> Target | None:
        """The activity launched before an item that ended last until ``time``, if it ended just then."""
        best, found = time - LONGEST_RETURN, None
        for stream in self.all:
            rows = self._rows[stream][: np.searchsorted(self._rows[stream], before)][-RECENT:]
            ends = self._ends[rows]
            fits = np.flatnonzero((ends <= time + JUST) & (ends > best))
            if len(fits):
                slot = fits[np.argmax(ends[fits])]
                best, found = float(ends[slot]), Target(stream, int(rows[slot]))
        return found

    def latest(self, targets: list[Target], before: int, until: float) -> Target | None:
        """Of several targets the one that was done last, of those done by ``until``; ``None`` for nothing."""
        ends = {target: self.end(target, before) for target in targets}
        fits = [target for target, end in ends.items() if -np.inf < end <= until]
        return max(fits, key=lambda target: ends[target]) if fits else None


@dataclass(frozen=True)
class Events:
    """Recorded events: the item of each call, and the stream that its thread had launched on last. That is where
    PyTorch records; −1 for none."""

    items: Ints
    streams: Ints

    def recent(self, before: int) -> list[Target]:
        """Those before an item, the latest first."""
        upto = int(np.searchsorted(self.items, before))
        rows = slice(max(0, upto - RECENT), upto)
        pairs = zip(self.streams[rows].tolist(), self.items[rows].tolist(), strict=True)
        return [Target(stream, item) for stream, item in pairs if stream >= 0][::-1]


def find_events(role: np.ndarray, host: pd.DataFrame, found: pd.DataFrame) -> Events:
    """The events that calls of each ``role`` (n,) recorded."""
    stream, chain = found["stream"].to_numpy(np.int64), host["chain"].to_numpy(np.int64)
    items = np.flatnonzero(role == "event-record")
    streams = np.full(len(items), -1, dtype=np.int64)
    for number in np.unique(chain[items]):
        mine = chain[items] == number
        launched = np.flatnonzero((chain == number) & (stream >= 0))
        slot = np.searchsorted(launched, items[mine]) - 1
        streams[mine] = np.append(stream[launched], -1)[slot]
    return Events(items, streams)


def carried_over(targets: Targets, step: Ints) -> Targets:
    """The targets with those of the first step that nothing in it shows, because what they wait for lies before it.
    Where the steps are of equal build, the second tells: what it waits for of its own step or of the one before."""
    counts = np.bincount(step)
    if len(counts) < 2 or counts[0] != counts[1] or counts[0] != counts[-1]:
        return targets
    size, items = int(counts[0]), len(step)

    def filled(known: Wanted) -> Wanted:
        # A step earlier; what then lies before the first step is the last one's, when it comes round again.
        first = {
            item - size: tuple(Target(t.stream, t.item if t.item == NOW else (t.item - size) % items) for t in wanted)
            for item, wanted in known.items()
            if size <= item < 2 * size
        }
        return {**first, **known}

    return Targets(filled(targets.waits), filled(targets.holds))
