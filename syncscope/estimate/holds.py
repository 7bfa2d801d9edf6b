"""What activities of one stream wait for on another: events, and the order with the legacy default stream."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pandas as pd

from syncscope.estimate.chains import roles
from syncscope.estimate.device import EARLY, JUST, at_once, stream_numbers
from syncscope.estimate.targets import RECENT, Events, Streams, Target, Wanted, find_events
from syncscope.timeline import Timeline
from syncscope.timeline.intervals import Floats, Ints

DEFAULT_STREAM = 7
"""What CUPTI calls the legacy default stream."""

LEAST_SHOWN = 3
"""How often two streams must be seen to be ordered, with no event between, for it to count."""


def find_holds(timeline: Timeline, host: pd.DataFrame, found: pd.DataFrame) -> Wanted:
    """For each activity that another stream's event held (or might have), what it waited for.

    The device's record of a wait tells. Without one the thread's next launch is on the stream that waits, and the
    event the latest one of another stream that was over when it began. Of several waits in a row either the streams
    that wait differ, or those they wait for.
    """
    role, stream = roles(timeline, host), found["stream"].to_numpy(np.int64)
    events, streams, noted = find_events(role, host, found), Streams(found), _noted(timeline, host)
    chain, starts = host["chain"].to_numpy(np.int64), found["starts"].to_numpy()
    waiting = role == "stream-wait-event"
    holds: Wanted = {}
    for number in np.unique(chain[waiting]):
        mine = np.flatnonzero((chain == number) & ((stream >= 0) | waiting))
        for waits, launches in _in_rows(mine, stream):
            for held in _first_each(launches, stream)[: len(waits)]:
                began, on = float(starts[held]), int(stream[held])
                if len(waits) == 1:
                    known = noted.get(waits[0]) or _event_of_another(events, streams, waits[0], on, began)
                    wanted = [known] if known is not None else []
                else:
                    before = mine[mine < waits[0]][::-1][:RECENT]
                    others = [int(stream[item]) for item in _first_each(before, stream) if stream[item] != on]
                    wanted = [Target(other, waits[-1]) for other in others[: len(waits)]]
                done = tuple(target for target in wanted if streams.end(target, held) <= began + EARLY)
                if done:
                    holds[held] = (*holds.get(held, ()), *done)
    for held, more in _with_default_stream(timeline, host, found, holds).items():
        holds[held] = (*holds.get(held, ()), *more)
    return holds


def held_until(holds: Wanted, found: pd.DataFrame) -> Floats:
    """When what holds each item was done in the trace (n,), −inf for nothing."""
    held, streams = np.full(len(found), -np.inf), Streams(found)
    for item, targets in holds.items():
        held[item] = max(streams.end(target, item) for target in targets)
    return held


def _in_rows(items: Ints, stream: Ints) -> Iterator[tuple[list[int], Ints]]:
    """Each row of waits among ``items`` (waits and launches of a thread), with the launches up to the next wait."""
    launch = stream[items] >= 0
    begins = np.flatnonzero(~launch & np.concatenate([[True], launch[:-1]]))
    for begin, end in zip(begins, np.append(begins[1:], len(items)), strict=True):
        part = items[begin:end]
        yield part[stream[part] < 0].tolist(), part[stream[part] >= 0]


def _first_each(items: Ints, stream: Ints) -> list[int]:
    """The first launch on each stream, in order; calls that launch nothing are passed over."""
    found: dict[int, int] = {}
    for item in items.tolist():
        if stream[item] >= 0:
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


def _event_of_another(events: Events, streams: Streams, item: int, waiting: int, began: float) -> Target | None:
    """The latest event of another stream than the ``waiting`` one that was over when it ``began``."""
    recent = [target for target in events.recent(item) if streams.end(target, item) <= began + EARLY]
    other = next((target for target in recent if target.stream != waiting), None)
    if other is not None or not recent:
        return other
    # ``a.wait_stream(b)`` records on b, wherever the thread launched last.
    others = [Target(number, recent[0].item) for number in streams.all if number != waiting]
    return streams.latest(others, item, began + EARLY)


def _with_default_stream(timeline: Timeline, host: pd.DataFrame, found: pd.DataFrame, holds: Wanted) -> Wanted:
    """What the legacy default stream and streams that are ordered with it hold each other by.

    PyTorch's own streams are not ordered with it. One that is shows it: launched while the other was busy, it begins
    when that is done, again and again, and the two are never busy at once.
    """
    stream, starts, ends = found["stream"].to_numpy(np.int64), found["starts"].to_numpy(), found["ends"].to_numpy()
    asked = host["end"].to_numpy()
    default = stream_numbers(timeline.trace.device)[1].get((timeline.device or 0, DEFAULT_STREAM), -1)
    result: Wanted = {}
    for other in np.unique(stream[(stream >= 0) & (stream != default)]).tolist() if default >= 0 else ():
        pair = np.flatnonzero((stream == other) | (stream == default))
        reach = np.concatenate([[-np.inf], np.maximum.accumulate(ends[pair])[:-1]])
        switch = np.concatenate([[False], stream[pair][1:] != stream[pair][:-1]])
        unheld = np.array([item not in holds for item in pair.tolist()])
        shown = switch & unheld & (reach > asked[pair] + JUST) & at_once(starts[pair], reach)
        if shown.sum() >= LEAST_SHOWN and (starts[pair][switch] >= reach[switch] - EARLY).all():
            for item in pair[switch].tolist():
                result[item] = (*result.get(item, ()), Target(int(default if stream[item] == other else other)))
    return result
