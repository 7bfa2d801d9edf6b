"""What waits wait for: which stream, or which activity, the host or another stream was held by."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import pandas as pd

from syncscope.estimate.device import JUST, LAUNCHES, stream_numbers
from syncscope.timeline import Timeline
from syncscope.timeline.intervals import Bools, Floats, Ints

NOW = -1
"""In place of an item: everything on the stream so far."""

AT_RETURN = 100_000
"""Nanoseconds between the end of what a wait waited for and its return, at most."""

UNBLOCKED = 3_000.0
"""Nanoseconds that a wait takes with nothing to wait for, where the trace shows none."""

DEFAULT_STREAM = 7
LEAST_SHOWN = 3
"""How often two streams must have been ordered with no event between for it to count."""

SHORT = 15_000
"""Nanoseconds below which a wait for an event had nothing to wait for."""

WAITING = ("stream-sync", "device-sync", "event-sync", "device-free")
RECENT = 64
"""How many recorded events back a wait may look."""


class Target(NamedTuple):
    """A stream up to and with an item's activity, or up to ``NOW``."""

    stream: int
    item: int = NOW


@dataclass(frozen=True)
class Targets:
    waits: dict[int, tuple[Target, ...]]
    """By item, what the host waits for."""
    holds: dict[int, tuple[Target, ...]]
    """By item of an activity, what it may not begin before, besides its own stream."""

    def remembered(self) -> dict[int, tuple[Target, ...]]:
        """Targets that something asks for later than at their item, by item."""
        every = (*self.waits.values(), *self.holds.values())
        found: dict[int, tuple[Target, ...]] = {}
        for target in dict.fromkeys(target for targets in every for target in targets if target.item >= 0):
            found[target.item] = (*found.get(target.item, ()), target)
        return found


class Streams:
    """The ends of activities by stream, for looking up what had been launched by an item."""

    def __init__(self, found: pd.DataFrame) -> None:
        stream, self._ends = found["stream"].to_numpy(np.int64), found["ends"].to_numpy()
        self.all = range(int(stream.max(initial=-1)) + 1)
        self._rows = [np.flatnonzero(stream == number) for number in self.all]
        self._reach = [np.maximum.accumulate(self._ends[rows]) for rows in self._rows]

    def last(self, stream: int, before: int) -> int:
        """The stream's last item before an item, −1 none."""
        slot = int(np.searchsorted(self._rows[stream], before)) - 1
        return int(self._rows[stream][slot]) if slot >= 0 else -1

    def end(self, target: Target, before: int) -> float:
        """When a target was done, as seen by an item; −inf for nothing."""
        item = before if target.item == NOW else target.item + 1
        slot = int(np.searchsorted(self._rows[target.stream], item)) - 1
        return float(self._reach[target.stream][slot]) if slot >= 0 else -np.inf

    def ended_at(self, time: float, before: int) -> Target | None:
        """The activity launched before an item that ended last until ``time``, if it ended just then."""
        best, found = time - AT_RETURN, None
        for stream in self.all:
            rows = self._rows[stream][: np.searchsorted(self._rows[stream], before)][-RECENT:]
            ends = self._ends[rows]
            fits = np.flatnonzero((ends <= time + JUST) & (ends > best))
            if len(fits):
                slot = fits[np.argmax(ends[fits])]
                best, found = float(ends[slot]), Target(stream, int(rows[slot]))
        return found


@dataclass(frozen=True)
class Events:
    """Recorded events: the item of the call, and the stream it was recorded on (a guess: −1 unknown)."""

    items: Ints
    streams: Ints

    def recent(self, before: int) -> list[Target]:
        """The latest recorded first."""
        upto = int(np.searchsorted(self.items, before))
        pairs = zip(self.items[max(0, upto - RECENT) : upto], self.streams[max(0, upto - RECENT) : upto], strict=True)
        return [Target(int(stream), int(item)) for item, stream in pairs if stream >= 0][::-1]


def roles(timeline: Timeline, host: pd.DataFrame) -> np.ndarray:
    """The role of each item's call, ``""`` for none."""
    return np.append(timeline.calls["role"].astype(object).to_numpy(), "")[host["call"].to_numpy(np.int64)]


def find_events(role: np.ndarray, host: pd.DataFrame, found: pd.DataFrame) -> Events:
    """Events with the stream that their thread launched on last: PyTorch records where it has just launched."""
    stream = found["stream"].to_numpy(np.int64)
    chain = host["chain"].to_numpy(np.int64)
    items = np.flatnonzero(role == "event-record")
    streams = np.full(len(items), -1, dtype=np.int64)
    for number in np.unique(chain[items]):
        mine = chain[items] == number
        launched = np.flatnonzero((chain == number) & (stream >= 0))
        slot = np.searchsorted(launched, items[mine]) - 1
        streams[mine] = np.where(slot >= 0, stream[launched[np.maximum(slot, 0)]] if len(launched) else -1, -1)
    return Events(items, streams)


def find_holds(timeline: Timeline, host: pd.DataFrame, found: pd.DataFrame) -> dict[int, tuple[Target, ...]]:
    """For each activity that another stream's event held (or might have), what it waited for.

    The device's record of a wait tells. Without one the thread's next launch is on the stream that waits, and the
    event the latest one of another stream that was over when it began. Of several waits in a row either the streams
    that wait differ, or those they wait for.
    """
    role, stream = roles(timeline, host), found["stream"].to_numpy(np.int64)
    events, streams, noted = find_events(role, host, found), Streams(found), _noted(timeline, host)
    chain, starts = host["chain"].to_numpy(np.int64), found["starts"].to_numpy()
    holds: dict[int, tuple[Target, ...]] = {}

    def hold(held: int, target: Target | None) -> None:
        if target is not None and streams.end(target, held) <= starts[held] + JUST:
            holds[held] = (*holds.get(held, ()), target)

    for number in np.unique(chain[role == "stream-wait-event"]):
        mine = np.flatnonzero((chain == number) & ((stream >= 0) | (role == "stream-wait-event")))
        for waits, launches in _in_rows(mine, stream):
            nexts = _distinct(launches, stream)[: len(waits)]
            if nexts and len(waits) == 1:
                target = _event_of_other(events, streams, waits[0], int(stream[nexts[0]]), float(starts[nexts[0]]))
                hold(nexts[0], noted.get(waits[0]) or target)
            for held in nexts if len(waits) > 1 else ():
                before = _distinct(mine[mine < waits[0]][::-1][:RECENT], stream, other_than=int(stream[held]))
                for last in before[: len(waits)]:
                    hold(held, Target(int(stream[last]), waits[-1]))
    for held, more in _by_default_stream(timeline, host, found, holds).items():
        holds[held] = (*holds.get(held, ()), *more)
    return holds


def _in_rows(items: Ints, stream: Ints) -> Iterator[tuple[list[int], Ints]]:
    """Each row of waits among ``items`` (waits and launches of a thread), with the launches up to the next wait."""
    launch = stream[items] >= 0
    begins = np.flatnonzero(~launch & np.concatenate([[True], launch[:-1]]))
    for begin, end in zip(begins, np.append(begins[1:], len(items)), strict=True):
        part = items[begin:end]
        yield part[stream[part] < 0].tolist(), part[stream[part] >= 0]


def _distinct(launches: Ints, stream: Ints, other_than: int = -1) -> list[int]:
    """The first launch on each stream, in order."""
    found: dict[int, int] = {}
    for item in launches.tolist():
        if stream[item] >= 0 and stream[item] != other_than:
            found.setdefault(int(stream[item]), item)
    return list(found.values())


def _noted(timeline: Timeline, host: pd.DataFrame) -> dict[int, Target]:
    """What the trace's own records say of waits for events: by item the recording call."""
    sync = timeline.trace.sync
    known = sync[(sync["wait_on_event_correlation"] >= 0).to_numpy(bool)]
    if not len(known):
        return {}
    correlation = np.append(timeline.calls["correlation"].to_numpy(np.int64), -1)[host["call"].to_numpy(np.int64)]
    item_of = {int(number): item for item, number in enumerate(correlation) if number >= 0}
    stream_of = stream_numbers(timeline.trace.device)[1]
    columns = ["correlation", "wait_on_event_correlation", "wait_on_stream", "device"]
    result = {}
    for waiting, recorded, stream, where in known[columns].itertuples(index=False):
        number = stream_of.get((max(int(where), 0), int(stream)), -1)
        if waiting in item_of and recorded in item_of and number >= 0:
            result[item_of[waiting]] = Target(number, item_of[recorded])
    return result


def _event_of_other(events: Events, streams: Streams, item: int, waiting: int, began: float) -> Target | None:
    recent = [target for target in events.recent(item) if streams.end(target, item) <= began + JUST]
    other = next((target for target in recent if target.stream != waiting), None)
    if other is not None or not recent:
        return other
    # ``a.wait_stream(b)`` records on b, wherever the thread launched last.
    record = recent[0].item
    ends = {n: streams.end(Target(n, record), item) for n in streams.all if n != waiting}
    fits = {number: end for number, end in ends.items() if -np.inf < end <= began + JUST}
    return Target(max(fits, key=lambda n: fits[n]), record) if fits else None


def _by_default_stream(
    timeline: Timeline, host: pd.DataFrame, found: pd.DataFrame, holds: dict[int, tuple[Target, ...]]
) -> dict[int, tuple[Target, ...]]:
    """What the legacy default stream and streams that are ordered with it hold each other by.

    PyTorch's own streams are not ordered with it. One that is shows it: launched while the other was busy, it begins
    when that is done, again and again, and the two are never busy at once.
    """
    stream, starts, ends = found["stream"].to_numpy(np.int64), found["starts"].to_numpy(), found["ends"].to_numpy()
    default = _default_stream(timeline)
    result: dict[int, tuple[Target, ...]] = {}
    for other in range(int(stream.max(initial=-1)) + 1) if default is not None else ():
        pair = np.flatnonzero((stream == other) | (stream == default))
        if other == default or not (stream[pair] == other).any():
            continue
        reach = np.concatenate([[-np.inf], np.maximum.accumulate(ends[pair])[:-1]])
        switch = np.concatenate([[False], stream[pair][1:] != stream[pair][:-1]])
        asked = host["end"].to_numpy()[pair]
        unheld = np.array([item not in holds for item in pair.tolist()])
        shown = switch & unheld & (reach > asked + JUST) & (np.abs(starts[pair] - reach) <= JUST)
        if shown.sum() >= LEAST_SHOWN and (starts[pair][switch] >= reach[switch] - JUST).all():
            opposite = np.where(stream[pair] == other, default, other)
            result |= {int(i): (Target(int(n)),) for i, n in zip(pair[switch], opposite[switch], strict=True)}
    return result


def _default_stream(timeline: Timeline) -> int | None:
    """The number of the legacy default stream: CUPTI calls it 7."""
    if timeline.device is None:
        return None
    return stream_numbers(timeline.trace.device)[1].get((timeline.device, DEFAULT_STREAM))


@dataclass(frozen=True)
class Waits:
    """The host's waits by item (n,): whether it waits there, from the target's end to the return of the call (ns), and
    what the call costs where nothing is left to wait for (ns)."""

    wait: Bools
    back: Floats
    own: Floats
    targets: dict[int, tuple[Target, ...]]


def find_waits(timeline: Timeline, host: pd.DataFrame, found: pd.DataFrame) -> Waits:
    """What each wait waited for. A wait whose target cannot be found keeps its length as host work."""
    begin, end, own = host["begin"].to_numpy(), host["end"].to_numpy(), host["own"].to_numpy().copy()
    n = len(host)
    wait, back = np.zeros(n, dtype=bool), np.zeros(n)
    streams, role = Streams(found), roles(timeline, host)
    events = find_events(role, host, found)
    targets: dict[int, tuple[Target, ...]] = {}
    named = _named_streams(timeline, host)
    blocked = np.zeros(n, dtype=bool)
    for item in np.flatnonzero(np.isin(role, WAITING) & ~found["blocks"].to_numpy(bool)).tolist():
        chosen = _targets_of(item, str(role[item]), named, streams, events, begin[item], end[item], host)
        done = max((streams.end(target, item) for target in chosen), default=-np.inf)
        if not chosen or done > end[item] + JUST or (done > begin[item] and end[item] - done > AT_RETURN):
            continue
        wait[item], targets[item] = True, chosen
        blocked[item] = done > begin[item]
        back[item] = end[item] - done if blocked[item] else 0.0
    for name in WAITING:
        mine = wait & (role == name)
        free = float(np.median(own[mine & ~blocked])) if (mine & ~blocked).any() else UNBLOCKED
        own[mine & blocked] = np.minimum(own[mine & blocked], free)
        back[mine & ~blocked] = float(np.median(back[mine & blocked])) if (mine & blocked).any() else 0.0
    for name in LAUNCHES:
        mine = found["blocks"].to_numpy(bool) & (role == name)
        others = (role == name) & ~mine
        back[mine] = end[mine] - found["ends"].to_numpy()[mine]
        own[mine] = np.minimum(own[mine], np.median(own[others]) if others.any() else UNBLOCKED)
    return Waits(wait, back, own, targets)


def _targets_of(
    item: int, role: str, named: dict[int, int], streams: Streams, events: Events, begin: float, end: float,
    host: pd.DataFrame,
) -> tuple[Target, ...]:  # fmt: skip
    if role in ("device-sync", "device-free"):
        return tuple(Target(n) for n in streams.all if streams.last(n, item) >= 0)
    if role == "stream-sync":
        return _stream_of(item, named, streams, begin, end)
    recent = [t for t in events.recent(item) if streams.end(t, item) > -np.inf]
    if end - begin < SHORT:
        done = (target for target in recent if streams.end(target, item) <= begin + JUST)
    else:
        done = (target for target in recent if end - AT_RETURN <= streams.end(target, item) <= end + JUST)
    target = next(done, None) or (streams.ended_at(end, item) if end - begin >= SHORT else None)
    return () if target is None else (target,)


def _stream_of(item: int, named: dict[int, int], streams: Streams, begin: float, end: float) -> tuple[Target, ...]:
    """The stream that a wait for a stream waited for: the named one, else the one that was done when it returned."""
    if item in named:
        return (Target(named[item]),)
    ends = {n: streams.end(Target(n), item) for n in streams.all}
    fits = {n: e for n, e in ends.items() if e <= end + JUST}
    return (Target(max(fits, key=lambda n: fits[n])),) if fits and max(fits.values()) > -np.inf else ()


def _named_streams(timeline: Timeline, host: pd.DataFrame) -> dict[int, int]:
    """By item the stream that a wait for a stream names: that of the copy it completes, or the device's record."""
    number = stream_numbers(timeline.trace.device)[1]
    item_of = {int(call): item for item, call in enumerate(host["call"]) if call >= 0}
    sync = timeline.trace.sync[(timeline.trace.sync["stream"] >= 0).to_numpy(bool)]
    columns = (sync[name].tolist() for name in ("correlation", "device", "stream"))
    noted = {correlation: (max(device, 0), stream) for correlation, device, stream in zip(*columns, strict=True)}
    correlations = timeline.calls["correlation"].tolist()
    names = {item: noted[correlations[call]] for call, item in item_of.items() if correlations[call] in noted}
    waits = timeline.waits[(timeline.waits["copy"] >= 0).to_numpy(bool)]
    copies = timeline.copies.loc[waits["copy"].to_numpy(np.int64)]
    for call, device, stream in zip(waits["call"], copies["device"], copies["stream"], strict=True):
        if int(call) in item_of:
            names[item_of[int(call)]] = int(device), int(stream)
    return {item: number[name] for item, name in names.items() if name in number}


def carried_over(targets: Targets, step: Ints) -> Targets:
    """The targets with those of the first step that nothing in it shows, because what they wait for lies before it.
    Where the steps are of equal build, the second tells: what it waits for of its own step or of the one before."""
    counts = np.bincount(step)
    if len(counts) < 2 or counts[0] != counts[1] or counts[0] != counts[-1]:
        return targets
    size, items = int(counts[0]), len(step)

    def filled(known: dict[int, tuple[Target, ...]]) -> dict[int, tuple[Target, ...]]:
        # A step earlier; what then lies before the first step is the last one's, when it comes round again.
        first = {
            item - size: tuple(Target(t.stream, t.item if t.item == NOW else (t.item - size) % items) for t in wanted)
            for item, wanted in known.items()
            if size <= item < 2 * size
        }
        return {**first, **known}

    return Targets(filled(targets.waits), filled(targets.holds))
