"""What the host's waits wait for, and how much of their time is their own."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd

from syncscope.estimate.chains import roles
from syncscope.estimate.device import JUST, LAUNCHES, stream_numbers
from syncscope.estimate.targets import LONGEST_RETURN, Events, Streams, Target, Wanted, find_events
from syncscope.timeline import Timeline
from syncscope.timeline.intervals import Bools, Floats

UNBLOCKED = 3_000.0
"""Nanoseconds that a wait takes with nothing to wait for, where the trace shows none."""

SHORT = 15_000
"""Nanoseconds below which a wait for an event had nothing to wait for."""

WAITING = ("stream-sync", "device-sync", "event-sync", "device-free")
"""Roles of calls that wait for the device; giving memory back waits for all of it."""


@dataclass(frozen=True)
class Waits:
    """The host's waits by item (n,)."""

    wait: Bools
    back: Floats
    """ns from the end of what it waited for to the return of the call."""
    own: Floats
    """ns of host work inside the call: where it waits or blocks, what it takes with nothing to wait for."""
    targets: Wanted


def find_waits(timeline: Timeline, host: pd.DataFrame, found: pd.DataFrame) -> Waits:
    """What each wait waited for. A wait whose target cannot be found keeps its length as host work."""
    role, blocks = roles(timeline, host), found["blocks"].to_numpy(bool)
    begin, end, own = (host[name].to_numpy(copy=True) for name in ("begin", "end", "own"))
    streams, events = Streams(found), find_events(role, host, found)
    named = _named_streams(timeline, host)
    targets: Wanted = {}
    blocked, back = np.zeros(len(host), dtype=bool), np.zeros(len(host))
    for item in np.flatnonzero(np.isin(role, WAITING) & ~blocks).tolist():
        span = (float(begin[item]), float(end[item]))
        wanted = _targets(item, str(role[item]), span, named.get(item), streams, events)
        done = max((streams.end(target, item) for target in wanted), default=np.inf)
        if done <= begin[item] or end[item] - LONGEST_RETURN <= done <= end[item] + JUST:
            targets[item] = wanted
            blocked[item] = done > begin[item]
            back[item] = end[item] - done if blocked[item] else 0.0
    wait = np.isin(np.arange(len(host)), list(targets))
    for name in WAITING:
        mine = wait & (role == name)
        free, usual = own[mine & ~blocked], back[mine & blocked]
        own[mine & blocked] = np.minimum(own[mine & blocked], np.median(free) if len(free) else UNBLOCKED)
        back[mine & ~blocked] = np.median(usual) if len(usual) else 0.0
    for name in LAUNCHES:
        mine = blocks & (role == name)
        others = own[(role == name) & ~blocks]
        back[mine] = end[mine] - found["ends"].to_numpy()[mine]
        own[mine] = np.minimum(own[mine], np.median(others) if len(others) else UNBLOCKED)
    return Waits(wait, back, own, targets)


def _targets(
    item: int, role: str, span: tuple[float, float], named: int | None, streams: Streams, events: Events
) -> tuple[Target, ...]:
    """What a call that lasted for ``span`` waited for; ``named`` is the stream that it names, where that is known."""
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


def _named_streams(timeline: Timeline, host: pd.DataFrame) -> dict[int, int]:
    """By item the stream that a wait for a stream names: by the device's record, else that of the copy it completes."""
    number = stream_numbers(timeline.trace.device)[1]
    item_of = {int(call): item for item, call in enumerate(host["call"]) if call >= 0}
    waits = timeline.waits[(timeline.waits["copy"] >= 0).to_numpy(bool)]
    copies = timeline.copies.loc[waits["copy"].to_numpy(np.int64)]
    completed = zip(waits["call"].tolist(), copies["device"].tolist(), copies["stream"].tolist(), strict=True)
    names = {item_of[call]: (device, stream) for call, device, stream in completed if call in item_of}
    sync = timeline.trace.sync[(timeline.trace.sync["stream"] >= 0).to_numpy(bool)]
    columns = (sync[name].tolist() for name in ("correlation", "device", "stream"))
    noted = {correlation: (max(device, 0), stream) for correlation, device, stream in zip(*columns, strict=True)}
    correlations = timeline.calls["correlation"].tolist()
    names |= {item: noted[correlations[call]] for call, item in item_of.items() if correlations[call] in noted}
    return {item: number[name] for item, name in names.items() if name in number}
