"""What a picture of the timeline needs: host threads, streams, bubbles and steps, few enough to draw.

Times are nanoseconds since the window's start (``Lanes.start_ns``); an item that began earlier is negative.
Where a window holds more than fits, neighbours are merged and say how many they are: nothing is dropped.
"""

from __future__ import annotations

from collections import Counter
from typing import Literal

import msgspec
import numpy as np
import pandas as pd

from syncscope.timeline.copies import blocks_alone
from syncscope.timeline.detail import merged
from syncscope.timeline.intervals import Bools, Ints, Union
from syncscope.timeline.rows import KINDS, picture_rows
from syncscope.timeline.timeline import Timeline
from syncscope.timeline.waits import is_wait

MOST_ITEMS = 9_000
"""Bars of a window: what a browser draws at once, and less than half a megabyte."""

MOST_BUBBLES = 2_000


class Item(msgspec.Struct, frozen=True, array_like=True):
    """One bar. An array in JSON, since there are thousands."""

    ts: int
    dur: int
    kind: int
    """Index into ``Lanes.kinds``."""
    name: int
    """Index into ``Lanes.names``; of the longest where several were merged."""
    bytes: int | None = None
    memory: str | None = None
    """The host side of a copy, ``pageable`` or ``pinned``; ``None`` unknown or no host side."""
    spot: int | None = None
    """Index into ``Lanes.spots``, for waits and copies."""
    link: int | None = None
    """The item this one led to (launch → device work) or waited for (wait → copy), counted over all lanes in order."""
    merged: int = 1
    """How many events this bar stands for."""
    busy: int = 0
    """Nanoseconds in use, at most ``dur``: less where there are gaps between merged events."""


class Lane(msgspec.Struct, frozen=True, kw_only=True):
    """A host thread or a stream."""

    label: str
    place: Literal["host", "stream"]
    tid: int | None = None
    device: int | None = None
    stream: int | None = None
    items: tuple[Item, ...]
    """In order of ``ts``."""
    exposed: tuple[tuple[int, int], ...] = ()
    """(ts, dur) of the parts of copies and collectives with no compute beside them."""


class Bubble(msgspec.Struct, frozen=True, kw_only=True):
    """The device is idle."""

    device: int
    ts: int
    dur: int
    cause: str
    link: int | None = None
    """The wait that emptied the queue: an item, counted over all lanes."""


class StepMark(msgspec.Struct, frozen=True, kw_only=True):
    number: int
    ts: int
    dur: int


class Spot(msgspec.Struct, frozen=True, kw_only=True):
    """What tells which finding a wait or a copy belongs to."""

    file: str | None
    line: int | None
    expression: str | None
    at_file: str | None
    at_line: int | None
    op: str | None


class Lanes(msgspec.Struct, frozen=True, kw_only=True):
    """One rank's picture."""

    path: str
    rank: int | None = None
    start_ns: int
    """The window's start, nanoseconds since the trace's base."""
    dur: int
    """The window's length, nanoseconds."""
    steps: tuple[StepMark, ...]
    steps_recorded: int
    """How many steps the trace holds; ``steps`` may be the first few."""
    kinds: tuple[str, ...] = KINDS
    names: tuple[str, ...]
    spots: tuple[Spot, ...] = ()
    lanes: tuple[Lane, ...]
    bubbles: tuple[Bubble, ...] = ()
    bubbles_left_out: int = 0
    """Bubbles too short to draw."""
    wait_ms_per_step: float | None = None
    """Milliseconds that host threads are blocked, a recorded step (in all where the trace has no steps)."""
    events: int
    """How many events of the trace the items stand for."""
    sources: dict[str, dict[str, str]] = {}
    """Source text around sites: file → line number → text, as it was recorded."""


def lanes(timeline: Timeline, steps: int = 3, max_items: int = MOST_ITEMS) -> Lanes:
    """The first ``steps`` recorded steps (the whole trace where it has none) in at most about ``max_items`` bars."""
    trace = timeline.trace
    rows = picture_rows(timeline)
    start, stop = _window(timeline, rows, steps)
    inside = ((rows["end"] >= start) & (rows["ts"] <= stop)).to_numpy(bool)
    order = _lane_order(rows[inside])
    drawn, bar_of = _drawn(rows, inside, order, max_items)
    names, spots = _interned(drawn["name"]), _spots(drawn, timeline)
    items = _items(drawn, start, timeline, names, spots)
    bubbles, left_out = _bubbles(timeline, start, stop, bar_of)
    exposed = _exposed(timeline, rows, start, stop)
    labels = _labels(order, timeline)
    marks = timeline.steps.iloc[:steps]
    return Lanes(
        path=trace.path,
        rank=trace.rank,
        start_ns=start,
        dur=stop - start,
        steps=tuple(
            StepMark(number=int(number), ts=int(ts) - start, dur=int(dur))
            for number, ts, dur in zip(marks["number"], marks["ts"], marks["dur"], strict=True)
        ),
        steps_recorded=len(timeline.steps),
        names=tuple(names),
        spots=tuple(spots),
        lanes=tuple(
            _lane(key, label, items[number], exposed.get(key[2:], ()))
            for number, (key, label) in enumerate(zip(order, labels, strict=True))
        ),
        bubbles=bubbles,
        bubbles_left_out=left_out,
        wait_ms_per_step=_wait_ms(timeline),
        events=int(inside.sum()),
        sources=trace.recording.sources if trace.recording else {},
    )


def _window(timeline: Timeline, rows: pd.DataFrame, steps: int) -> tuple[int, int]:
    """From the first step's begin to the end of the last one drawn and of the device work it launched."""
    marks = timeline.steps.iloc[:steps]
    if not len(marks):
        return (int(rows["ts"].min()), int(rows["end"].max())) if len(rows) else (0, 0)
    start, stop = int(marks["ts"].min()), int(marks["end"].max())
    launching = rows[(rows["link"] >= 0) & (rows["ts"] >= start) & (rows["ts"] < stop)]
    ends = rows["end"].to_numpy(np.int64)[launching["link"].to_numpy(np.int64)]
    tail = int(ends.max()) if len(ends) else stop
    return start, max(stop, min(tail, stop + int(marks["dur"].iloc[-1])))


LaneKey = tuple[bool, int, int, int]
"""Whether it is a host thread, then tid, device and stream, −1 where they do not apply."""

LANE = ["host", "tid", "device", "stream"]


def _lane_order(rows: pd.DataFrame) -> list[LaneKey]:
    """Host threads, those with the most runtime calls first, then streams by number."""
    calls = rows["kind"].isin(["launch", "call", "wait"])
    busy = rows[calls & rows["host"]].groupby("tid").size().to_dict()
    keys = rows[LANE].drop_duplicates().itertuples(index=False, name=None)
    found = [(bool(host), int(tid), int(device), int(stream)) for host, tid, device, stream in keys]
    return sorted(found, key=lambda key: (not key[0], -busy.get(key[1], 0), key[1:]))


def _lane(key: LaneKey, label: str, items: tuple[Item, ...], exposed: tuple[tuple[int, int], ...]) -> Lane:
    host, tid, device, stream = key
    if host:
        return Lane(label=label, place="host", tid=tid, items=items)
    return Lane(label=label, place="stream", device=device, stream=stream, items=items, exposed=exposed)


def _drawn(rows: pd.DataFrame, inside: Bools, order: list[LaneKey], most: int) -> tuple[pd.DataFrame, Ints]:
    """The bars in order of lane and time, and for each row of ``rows`` its bar, −1 outside the window."""
    table = rows[inside].reset_index(drop=True)
    number = {key: i for i, key in enumerate(order)}
    table["lane"] = [number[key] for key in table[LANE].itertuples(index=False, name=None)]
    # Only waits and copies of one place, and only events of one lane and kind, may stand for one another.
    table["key"] = table.groupby(["lane", "kind", "place"], sort=True).ngroup().astype("int64")
    bars, bar = merged(table, most)
    place = np.lexsort((bars["ts"].to_numpy(np.int64), bars["lane"].to_numpy(np.int64)))
    moved = np.empty(len(bars), dtype=np.int64)
    moved[place] = np.arange(len(bars))
    bar_of = np.full(len(rows) + 1, -1, dtype=np.int64)
    bar_of[np.flatnonzero(inside)] = moved[bar]
    bars = bars.iloc[place].reset_index(drop=True)
    bars["link"] = bar_of[bars["link"].to_numpy(np.int64)]
    return bars, bar_of[:-1]


def _interned(names: pd.Series) -> dict[str, int]:
    return {str(name): number for number, name in enumerate(pd.unique(names))}


def _spots(bars: pd.DataFrame, timeline: Timeline) -> dict[Spot, int]:
    """The distinct places and ops of the waits and copies drawn."""
    found: dict[Spot, int] = {}
    shown = bars[bars["place"] >= 0]
    for place, op in shown[["place", "op"]].drop_duplicates().itertuples(index=False, name=None):
        found.setdefault(_spot(timeline, int(place), str(op)), len(found))
    return found


def _spot(timeline: Timeline, place: int, op: str) -> Spot:
    where = timeline.places[place]
    return Spot(
        file=where.site.file if where.site else None,
        line=where.site.line if where.site else None,
        expression=where.site.expression if where.site else None,
        at_file=where.at.file if where.at else None,
        at_line=where.at.line if where.at else None,
        op=op or None,
    )


def _items(
    bars: pd.DataFrame, start: int, timeline: Timeline, names: dict[str, int], spots: dict[Spot, int]
) -> dict[int, tuple[Item, ...]]:
    """Items by lane."""
    kinds = {kind: number for number, kind in enumerate(KINDS)}
    spot_of: dict[tuple[int, str], int | None] = {}
    out: dict[int, list[Item]] = {}
    columns = ["lane", "ts", "end", "kind", "name", "bytes", "memory", "place", "op", "link", "merged", "busy"]
    for lane, ts, end, kind, name, size, memory, place, op, link, count, busy in bars[columns].itertuples(index=False):
        if (place, op) not in spot_of:
            spot_of[place, op] = spots[_spot(timeline, place, op)] if place >= 0 else None
        item = Item(
            ts=ts - start, dur=end - ts, kind=kinds[kind], name=names[str(name)], bytes=None if size < 0 else size,
            memory=memory or None, spot=spot_of[place, op], link=None if link < 0 else link, merged=count, busy=busy,
        )  # fmt: skip
        out.setdefault(lane, []).append(item)
    return {lane: tuple(items) for lane, items in out.items()}


def _bubbles(timeline: Timeline, start: int, stop: int, call_bars: Ints) -> tuple[tuple[Bubble, ...], int]:
    """The longest bubbles in the window, in order of time, and how many were left out."""
    idle, device = timeline.idle, timeline.device
    if device is None:
        return (), 0
    idle = idle[((idle["end"] > start) & (idle["ts"] < stop)).to_numpy(bool)]
    kept = idle.nlargest(MOST_BUBBLES, "dur").sort_values("ts") if len(idle) > MOST_BUBBLES else idle
    # Calls are the first rows of the picture, so a call's number is its row's.
    call = np.append(timeline.waits["call"].to_numpy(np.int64), -1)[kept["emptied_by"].to_numpy(np.int64)]
    bar = np.append(call_bars, -1)[call]
    columns = zip(kept["ts"], kept["dur"], kept["cause"], bar, strict=True)
    found = tuple(
        Bubble(device=device, ts=int(ts) - start, dur=int(dur), cause=str(cause), link=int(link) if link >= 0 else None)
        for ts, dur, cause, link in columns
    )
    return found, len(idle) - len(kept)


def _exposed(
    timeline: Timeline, rows: pd.DataFrame, start: int, stop: int
) -> dict[tuple[int, int], tuple[tuple[int, int], ...]]:
    """By (device, stream), the parts of copies and collectives with no compute beside them.

    As in ``Overlap``, copies inside the device do not count.
    """
    in_window = ((rows["end"] > start) & (rows["ts"] < stop) & ~rows["host"]).to_numpy(bool)
    shown = rows[in_window]
    moving = shown[shown["kind"].isin(["HtoD", "DtoH", "copy", "collective"])]
    found = {}
    places = moving[["device", "stream"]].drop_duplicates().to_numpy(np.int64).tolist()
    for device, stream in places:
        mine = moving[(moving["device"] == device) & (moving["stream"] == stream)]
        computing = shown[(shown["kind"] == "compute") & (shown["device"] == device)]
        ts, end = _outside(_union(mine), _union(computing))
        found[device, stream] = tuple((int(a) - start, int(b - a)) for a, b in zip(ts, end, strict=True))
    return found


def _union(rows: pd.DataFrame) -> Union:
    return Union(rows["ts"].to_numpy(np.int64), rows["end"].to_numpy(np.int64))


def _outside(one: Union, other: Union) -> tuple[Ints, Ints]:
    """The pieces of ``one`` that ``other`` leaves uncovered."""
    if not len(one.ts):
        return one.ts, one.end
    free_ts, free_end = other.gaps(int(one.ts[0]), int(one.end[-1]))
    # Every pair of a piece of one and a free stretch that meet.
    low, high = np.searchsorted(free_end, one.ts, side="right"), np.searchsorted(free_ts, one.end, side="left")
    count = np.maximum(high - low, 0)
    mine = np.repeat(np.arange(len(count)), count)
    free = np.arange(len(mine)) - np.repeat(np.cumsum(count) - count, count) + low[mine]
    return np.maximum(one.ts[mine], free_ts[free]), np.minimum(one.end[mine], free_end[free])


def _labels(order: list[LaneKey], timeline: Timeline) -> list[str]:
    """Threads by name, with their number where a name is not enough; streams by number."""
    names = {tid: timeline.thread_name(tid) for host, tid, _, _ in order if host}
    shared = {name for name, count in Counter(names.values()).items() if count > 1}
    return [
        _thread_label(names[tid], tid, shared) if host else ("stream" if stream < 0 else f"stream {stream}")
        for host, tid, _, stream in order
    ]


def _thread_label(name: str | None, tid: int, shared: set[str | None]) -> str:
    if name is None:
        return f"thread {tid}"
    return f"{name} {tid}" if name in shared else name


def _wait_ms(timeline: Timeline) -> float | None:
    """Waits, and copies from and to pageable memory that block with no wait behind them."""
    if not len(timeline.calls):
        return None
    waits = timeline.waits[is_wait(timeline.waits["kind"])]
    copies = timeline.copies
    blocking = copies[blocks_alone(copies)]
    if len(timeline.steps):
        waits, blocking = (table[(table["step"] >= 0).to_numpy(bool)] for table in (waits, blocking))
    total = int(waits["stall"].sum()) + int(blocking["launch_dur"].sum())
    return total * 1e-6 / max(len(timeline.steps), 1)
