"""What the host's waits wait for, and what activities of one stream wait for on another.

A dependency is found from the trace's own records where it has them, else from when things began and ended.
"""

from __future__ import annotations

import itertools
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import NamedTuple

import msgspec
import numpy as np

from syncscope.estimate.device import EARLY, JUST, LAUNCHES, at_once
from syncscope.estimate.host import do_items
from syncscope.estimate.items import DevicePart, HostPart
from syncscope.timeline import Timeline
from syncscope.timeline.intervals import Bools, Floats, Ints
from syncscope.trace.quantiles import median
from syncscope.trace.sets import different

NOW = -1
"""Stands for everything on the stream so far, where a target names an item."""

RECENT = 64
"""How many recorded events and launches before a wait are searched for its target."""

LONGEST_RETURN = 100_000
"""The most nanoseconds between the end of what a wait waited for and its return."""

UNBLOCKED = 3_000.0
"""Nanoseconds that a wait takes with nothing to wait for, where the trace shows none."""

SHORT = 15_000
"""Nanoseconds below which a wait for an event had nothing to wait for."""

WAITING = ("stream-sync", "device-sync", "event-sync", "device-free")
"""Roles of calls that wait for the device; giving memory back waits for all of it."""

DEFAULT_STREAM = 7
"""What CUPTI calls the legacy default stream."""

LEAST_SHOWN = 3
"""How often two streams must be seen to be ordered, with no event between, for it to count."""


class Target(NamedTuple):
    """A stream up to what an item launched or recorded, or up to ``NOW``."""

    stream: int
    item: int = NOW


Dependencies = dict[int, tuple[Target, ...]]
"""The targets that each item waits for, all of them."""


class Targets(msgspec.Struct, frozen=True):
    waits: Dependencies
    """What the host waits for."""
    holds: Dependencies
    """What an activity may not begin before, besides its own stream."""

    def uses(self) -> Counter[Target]:
        """How many items wait for each target."""
        return Counter(
            target for wanted in (self.waits, self.holds) for targets in wanted.values() for target in targets
        )

    def remembered(self, others: Iterable[Target] = ()) -> Dependencies:
        """The targets that something waits for later, and ``others``, by the item that they name."""
        every = (*self.waits.values(), *self.holds.values(), tuple(others))
        by_item: Dependencies = {}
        for target in dict.fromkeys(target for targets in every for target in targets if target.item != NOW):
            by_item[target.item] = (*by_item.get(target.item, ()), target)
        return by_item


class Streams:
    """The ends of activities in the trace by stream: what had been launched by an item, and when it was done."""

    def __init__(self, device: DevicePart, numbers: dict[tuple[int, int], int]) -> None:
        """``numbers`` are those of ``number_streams``."""
        stream, self._ends, self.numbers = device.stream, device.ends, numbers
        self.all = range(int(stream.max(initial=-1)) + 1)
        self._rows = [np.flatnonzero(stream == number) for number in self.all]
        self._items = [rows.tolist() for rows in self._rows]  # asked for one by one
        self._reach = [np.maximum.accumulate(self._ends[rows]) for rows in self._rows]

    def used(self, before: int) -> list[int]:
        """Streams on which something was launched before an item."""
        return [number for number in self.all if self._items[number] and self._items[number][0] < before]

    def end(self, target: Target, before: int) -> float:
        """When a target was done, as seen by an item; −inf for nothing."""
        item = before if target.item == NOW else target.item + 1
        slot = bisect_left(self._items[target.stream], item) - 1
        return float(self._reach[target.stream][slot]) if slot >= 0 else -np.inf

    def last_until(self, time: float, before: int) -> Target | None:
        """The activity launched before an item that ended last until ``time``, if it ended just then."""
        best, last = time - LONGEST_RETURN, None
        for stream in self.all:
            rows = self._rows[stream][: bisect_left(self._items[stream], before)][-RECENT:]
            ends = self._ends[rows]
            fits = np.flatnonzero((ends <= time + JUST) & (ends > best))
            if len(fits):
                slot = fits[np.argmax(ends[fits])]
                best, last = float(ends[slot]), Target(stream, int(rows[slot]))
        return last

    def latest(self, targets: list[Target], before: int, until: float) -> Target | None:
        """The target that was done last among those done by ``until``; ``None`` where there is none."""
        ends = {target: self.end(target, before) for target in targets}
        fits = [target for target, end in ends.items() if -np.inf < end <= until]
        return max(fits, key=lambda target: ends[target]) if fits else None


class Events(msgspec.Struct, frozen=True):
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


def find_events(timeline: Timeline, host: HostPart, device: DevicePart) -> Events:
    """The events that calls recorded."""
    stream, chain = device.stream, host.chain
    items = np.flatnonzero(do_items(timeline, host, ["event-record"]))
    streams = np.full(len(items), -1, dtype=np.int64)
    for number in different(chain[items]):
        mine = chain[items] == number
        launched = np.flatnonzero((chain == number) & (stream >= 0))
        slot = np.searchsorted(launched, items[mine]) - 1
        streams[mine] = np.append(stream[launched], -1)[slot]
    return Events(items, streams)


def carry_over(targets: Targets, step: Ints) -> Targets:
    """The targets, and those of the first step that nothing in it shows because they lie before it.

    Where the steps are of equal build, the second step shows them: what it waits for of its own or of the step before.
    """
    counts = np.bincount(step)
    if len(counts) < 2 or counts[0] != counts[1] or counts[0] != counts[-1]:
        return targets
    size, items = int(counts[0]), len(step)

    def filled(known: Dependencies) -> Dependencies:
        # A step earlier; what then lies before the first step is the last one's, when it comes round again.
        first = {
            item - size: tuple(Target(t.stream, t.item if t.item == NOW else (t.item - size) % items) for t in wanted)
            for item, wanted in known.items()
            if size <= item < 2 * size
        }
        return {**first, **known}

    return Targets(filled(targets.waits), filled(targets.holds))


# ------------------------------------------------------------------------------------------ waits of the host


class HostWaits(msgspec.Struct, frozen=True):
    """The host's waits by item (n,)."""

    wait: Bools
    back: Floats
    """ns from the end of what it waited for to the return of the call."""
    own: Floats
    """ns of host work inside the call: where it waits or blocks, what it takes with nothing to wait for."""
    targets: Dependencies


def find_host_waits(
    timeline: Timeline, host: HostPart, device: DevicePart, streams: Streams, events: Events
) -> HostWaits:
    """What each wait waited for. A wait whose target cannot be found keeps its length as host work."""
    blocks, role = device.blocks, timeline.calls.role
    begin, end, own = host.begin, host.end, host.own.copy()
    named = _named_streams(timeline, host, streams)
    targets: Dependencies = {}
    blocked, back = np.zeros(len(host), dtype=bool), np.zeros(len(host))
    for item in np.flatnonzero(do_items(timeline, host, WAITING) & ~blocks).tolist():
        span = (float(begin[item]), float(end[item]))
        wanted = _targets(item, str(role[host.call[item]]), span, named.get(item), streams, events)
        done = max((streams.end(target, item) for target in wanted), default=np.inf)
        if done <= begin[item] or end[item] - LONGEST_RETURN <= done <= end[item] + JUST:
            targets[item] = wanted
            blocked[item] = done > begin[item]
            back[item] = end[item] - done if blocked[item] else 0.0
    wait = np.isin(np.arange(len(host)), list(targets))
    for name in WAITING:
        mine = wait & do_items(timeline, host, [name])
        free, usual = own[mine & ~blocked], back[mine & blocked]
        own[mine & blocked] = np.minimum(own[mine & blocked], median(free) if len(free) else UNBLOCKED)
        back[mine & ~blocked] = median(usual) if len(usual) else 0.0
    for name in LAUNCHES:
        launching = do_items(timeline, host, [name])
        mine, others = blocks & launching, own[launching & ~blocks]
        back[mine] = end[mine] - device.ends[mine]
        own[mine] = np.minimum(own[mine], median(others) if len(others) else UNBLOCKED)
    return HostWaits(wait, back, own, targets)


def _targets(
    item: int, role: str, span: tuple[float, float], named: int | None, streams: Streams, events: Events
) -> tuple[Target, ...]:
    """What a call that lasted for ``span`` waited for. ``named`` is the stream that it names, where that is known."""
    begin, end = span
    if role in ("device-sync", "device-free"):
        return tuple(Target(number) for number in streams.used(item))
    if role == "event-sync":
        target = _event(item, begin, end, streams, events)
    elif named is not None:
        target = Target(named)
    else:
        target = streams.latest([Target(number) for number in streams.all], item, end + JUST)
    return () if target is None else (target,)


def _event(item: int, begin: float, end: float, streams: Streams, events: Events) -> Target | None:
    """The event that a wait waited for: the latest one that was over when it began, where it returned at once; else
    the latest one that was over just when it returned, or the activity that was."""
    recent = [(target, streams.end(target, item)) for target in events.recent(item)]
    if end - begin < SHORT:
        return next((target for target, done in recent if -np.inf < done <= begin + JUST), None)
    just = (target for target, done in recent if end - LONGEST_RETURN <= done <= end + JUST)
    return next(just, None) or streams.last_until(end, item)


def _named_streams(timeline: Timeline, host: HostPart, streams: Streams) -> dict[int, int]:
    """The stream that each wait for a stream names, by item: from the device's record, else from the copy it
    completes."""
    records, number = timeline.sync_records, streams.numbers
    item_of = np.full(len(timeline.calls) + 1, -1)
    item_of[host.call[host.call >= 0]] = np.flatnonzero(host.call >= 0)
    waits = timeline.waits.take((timeline.waits.copy >= 0) & (item_of[timeline.waits.call] >= 0))
    copies = timeline.copies.take(waits.copy)
    completed = zip(item_of[waits.call].tolist(), copies.device.tolist(), copies.stream.tolist(), strict=True)
    names = {item: (device, stream) for item, device, stream in completed}
    columns = (column.tolist() for column in (records.correlation, records.device, records.stream))
    noted = {
        correlation: (max(device, 0), stream)
        for correlation, device, stream in zip(*columns, strict=True)
        if stream >= 0
    }
    if noted:
        called = np.flatnonzero(host.call >= 0)
        correlations = timeline.calls.correlation[host.call[called]].tolist()
        pairs = zip(called.tolist(), correlations, strict=True)
        names |= {item: noted[correlation] for item, correlation in pairs if correlation in noted}
    return {item: number[name] for item, name in names.items() if name in number}


# ---------------------------------------------------------------------------------------- waits of streams


def find_stream_waits(
    timeline: Timeline, host: HostPart, device: DevicePart, streams: Streams, events: Events
) -> Dependencies:
    """For each activity that another stream's event held (or might have), what it waited for.

    The device's record of a wait says it. Without a record, the stream that waits is that of the thread's next launch,
    and the event is the latest one of another stream that was over when that launch began. When several waits follow
    each other, either the streams that wait differ, or the streams they wait for.
    """
    stream, noted = device.stream, _recorded_waits(timeline, host, streams)
    chain, starts = host.chain, device.starts
    waiting = do_items(timeline, host, ["stream-wait-event"])
    holds: Dependencies = {}
    for number in different(chain[waiting]):
        mine = np.flatnonzero((chain == number) & ((stream >= 0) | waiting))
        for waits, launches in _waits_in_a_row(mine, stream):
            for held in _first_each(launches, stream, len(waits)):
                began, on = float(starts[held]), int(stream[held])
                if len(waits) == 1:
                    known = noted.get(waits[0]) or _event_of_another(events, streams, waits[0], on, began)
                    wanted = [known] if known is not None else []
                else:
                    before = mine[mine < waits[0]][::-1][:RECENT]
                    others = [int(stream[item]) for item in _first_each(before, stream, len(waits) + 1)]
                    others = [other for other in others if other != on]
                    wanted = [Target(other, waits[-1]) for other in others[: len(waits)]]
                done = tuple(target for target in wanted if streams.end(target, held) <= began + EARLY)
                if done:
                    holds[held] = (*holds.get(held, ()), *done)
    default = streams.numbers.get((timeline.device or 0, DEFAULT_STREAM), -1)
    for held, more in _with_default_stream(default, host, device, holds).items():
        holds[held] = (*holds.get(held, ()), *more)
    return holds


def held_until(holds: Dependencies, streams: Streams, items: int) -> Floats:
    """When what holds each item was done in the trace (items,), −inf for nothing."""
    held = np.full(items, -np.inf)
    for item, targets in holds.items():
        held[item] = max(streams.end(target, item) for target in targets)
    return held


def _waits_in_a_row(items: Ints, stream: Ints) -> Iterator[tuple[list[int], Ints]]:
    """Each row of waits among ``items`` (waits and launches of a thread), with the launches up to the next wait."""
    launch = stream[items] >= 0
    begins = np.flatnonzero(~launch & np.concatenate([[True], launch[:-1]]))
    for begin, end in itertools.pairwise([*begins.tolist(), len(items)]):
        part = items[begin:end]
        yield part[stream[part] < 0].tolist(), part[stream[part] >= 0]


def _first_each(items: Ints, stream: Ints, most: int) -> list[int]:
    """The first launch on each of the first ``most`` streams, in order; calls that launch nothing are passed over."""
    first: dict[int, int] = {}
    for item, on in zip(items.tolist(), stream[items].tolist(), strict=True):
        if on >= 0 and on not in first:
            first[on] = item
            if len(first) == most:
                break
    return list(first.values())


def _recorded_waits(timeline: Timeline, host: HostPart, streams: Streams) -> dict[int, Target]:
    """What the trace's own records say of waits for events: by item the recording call."""
    records = timeline.sync_records.take(timeline.sync_records.wait_on_event_correlation >= 0)
    if not len(records):
        return {}
    correlation = np.append(timeline.calls.correlation, -1)[host.call]
    item_of = {int(number): item for item, number in enumerate(correlation) if number >= 0}
    result = {}
    columns = records.correlation, records.wait_on_event_correlation, records.wait_on_stream, records.device
    for waiting, recorded, stream, device in zip(*(column.tolist() for column in columns), strict=True):
        number = streams.numbers.get((max(device, 0), stream), -1)
        if waiting in item_of and recorded in item_of and number >= 0:
            result[item_of[waiting]] = Target(number, item_of[recorded])
    return result


def _event_of_another(events: Events, streams: Streams, item: int, waiting: int, began: float) -> Target | None:
    """The latest event of another stream than the ``waiting`` one that was over when it ``began``."""
    latest: Target | None = None
    for target in events.recent(item):
        if streams.end(target, item) <= began + EARLY:
            if target.stream != waiting:
                return target
            latest = latest or target
    if latest is None:
        return None
    # ``a.wait_stream(b)`` records on b, wherever the thread launched last.
    others = [Target(number, latest.item) for number in streams.all if number != waiting]
    return streams.latest(others, item, began + EARLY)


def _with_default_stream(default: int, host: HostPart, device: DevicePart, holds: Dependencies) -> Dependencies:
    """What the legacy default stream and streams that are ordered with it hold each other by; ``default`` is its
    number, −1 for none.

    PyTorch's own streams are not ordered with it. One that is shows it: launched while the other was busy, it begins
    when that is done, again and again, and the two are never busy at once.
    """
    stream, starts, ends, launched = device.stream, device.starts, device.ends, host.end
    result: Dependencies = {}
    free = np.ones(len(stream), dtype=bool)
    free[list(holds)] = False
    for other in different(stream[(stream >= 0) & (stream != default)]).tolist() if default >= 0 else ():
        pair = np.flatnonzero((stream == other) | (stream == default))
        reach = np.concatenate([[-np.inf], np.maximum.accumulate(ends[pair])[:-1]])
        switch = np.concatenate([[False], stream[pair][1:] != stream[pair][:-1]])
        shown = switch & free[pair] & (reach > launched[pair] + JUST) & at_once(starts[pair], reach)
        if shown.sum() >= LEAST_SHOWN and (starts[pair][switch] >= reach[switch] - EARLY).all():
            for item in pair[switch].tolist():
                result[item] = (*result.get(item, ()), Target(int(default if stream[item] == other else other)))
    return result
