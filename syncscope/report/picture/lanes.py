"""What a picture of the timeline needs: host threads, streams, idle devices and steps, in few bytes.

Times are nanoseconds since the first row (``Lanes.start_ns``). Up to ``MOST_ITEMS`` every event has a bar of its own.
Beyond that, away from the first steps and from the first occurrence of each wait and copy, short neighbours share one
that says how many they are: nothing is dropped.
"""

from __future__ import annotations

from collections import Counter
from typing import Literal

import msgspec
import numpy as np
import pandas as pd

from syncscope.report.picture.detail import merged
from syncscope.report.picture.pack import Column, packed
from syncscope.report.picture.rows import HOST, IDLE, KIND, KINDS, STREAM, picture_rows
from syncscope.timeline.copies import blocks_alone
from syncscope.timeline.intervals import Bools, Ints, Union
from syncscope.timeline.steps import step_of
from syncscope.timeline.timeline import Timeline
from syncscope.timeline.waits import is_wait

MOST_ITEMS = 1_000_000
"""Bars of a page, all its ranks together: some 4 MB."""

FIRST_STEPS = 3
"""Steps in which every event has a bar of its own, as far as half of all bars allow."""

AROUND = 2_000_000
"""Nanoseconds around the first occurrence of a wait or copy in which every event has one."""

PLACES: dict[int, Literal["host", "idle", "stream"]] = {HOST: "host", IDLE: "idle", STREAM: "stream"}
MEMORY = ("", "pageable", "pinned")

BARS = {
    "ts": "int64", "dur": "int64",  # ns; in order within a series
    "name": "int64",  # index in Lanes.names; of the longest where several were merged
    "bytes": "int64",  # −1 unknown or none
    "memory": "int64",  # the host side of a copy: index in Lanes.memory; "" unknown or no host side
    "spot": "int64",  # index in Lanes.spots, for waits and copies; −1 none
    "merged": "int64",  # how many events the bar stands for
    "gaps": "int64",  # ns of dur not in use: between merged events
}  # fmt: skip
"""The columns of ``Lanes.bars``."""


class Lane(msgspec.Struct, frozen=True, kw_only=True):
    """A host thread, a stream, or the idle time of a device."""

    label: str
    place: Literal["host", "idle", "stream"]
    tid: int | None = None
    device: int | None = None
    stream: int | None = None


class Series(msgspec.Struct, frozen=True, kw_only=True):
    """The bars of one kind in one lane: ``count`` rows from ``first`` on."""

    lane: int
    kind: int
    """Index into ``Lanes.kinds``."""
    first: int
    count: int


class StepMark(msgspec.Struct, frozen=True, kw_only=True):
    number: int
    ts: int
    dur: int
    until: int
    """When the step and the device work that it launched have ended."""


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
    """When the first row or step begins, nanoseconds since the trace's base."""
    dur: int
    """Until the last one ends, nanoseconds."""
    steps: tuple[StepMark, ...]
    kinds: tuple[str, ...] = KINDS
    memory: tuple[str, ...] = MEMORY
    names: tuple[str, ...]
    spots: tuple[Spot, ...] = ()
    lanes: tuple[Lane, ...]
    series: tuple[Series, ...]
    """By lane and kind."""
    bars: dict[str, Column]
    """The table ``BARS``, a column each."""
    links: tuple[Column, Column]
    """From which bar to which: what a launch led to, what a wait waited for, the wait behind idle time."""
    wait_ms_per_step: float | None = None
    """Milliseconds that host threads are blocked, a recorded step (in all where the trace has no steps)."""
    events: int
    """How many events of the trace the bars stand for."""
    events_merged: int = 0
    """How many of them share a bar with others."""
    sources: dict[str, dict[str, str]] = {}
    """Source text around sites: file → line number → text, as it was recorded."""


def lanes(timeline: Timeline, max_items: int = MOST_ITEMS) -> Lanes:
    """The whole trace in at most about ``max_items`` bars."""
    trace = timeline.trace
    rows = picture_rows(timeline)
    start = min((int(table["ts"].min()) for table in (rows, timeline.steps) if len(table)), default=0)
    order, number = _lane_numbers(rows)
    bars = _bars(rows.assign(lane=number), timeline, max_items)
    spot, spots = _spots(bars, timeline)
    name, names = pd.factorize(bars["name"].to_numpy(object))
    memory = bars["memory"].map({memory: i for i, memory in enumerate(MEMORY)}).fillna(0)
    real = bars[~bars["kind"].isin([KIND["idle"], KIND["exposed"]]).to_numpy(bool)]
    dur = bars["end"] - bars["ts"]
    table = bars.assign(ts=bars["ts"] - start, dur=dur, gaps=dur - bars["busy"], spot=spot, name=name, memory=memory)
    return Lanes(
        path=trace.path,
        rank=trace.rank,
        start_ns=start,
        dur=int(rows["end"].max()) - start if len(rows) else 0,
        steps=_steps(rows, timeline, start),
        names=tuple(map(str, names)),
        spots=spots,
        lanes=_lanes(order, timeline),
        series=series(table),
        bars=columns(table),
        links=links(table),
        wait_ms_per_step=_wait_ms(timeline),
        events=int(real["merged"].sum()),
        events_merged=int(real["merged"][real["merged"] > 1].sum()),
        sources=trace.recording.sources if trace.recording else {},
    )


def _steps(rows: pd.DataFrame, timeline: Timeline, start: int) -> tuple[StepMark, ...]:
    marks = timeline.steps
    if not len(marks):
        return ()
    until = marks["end"].to_numpy(np.int64, copy=True)
    launching = rows[((rows["link"] >= 0) & (rows["where"] == HOST)).to_numpy(bool)]
    step = step_of(marks, launching["ts"].to_numpy(np.int64))
    ends = rows["end"].to_numpy(np.int64)[launching["link"].to_numpy(np.int64)]
    np.maximum.at(until, step[step >= 0], ends[step >= 0])
    columns = (marks["number"].tolist(), marks["ts"].tolist(), marks["dur"].tolist(), until.tolist())
    return tuple(
        StepMark(number=int(number), ts=ts - start, dur=dur, until=end - start)
        for number, ts, dur, end in zip(*columns, strict=True)
    )


LANE = ["where", "tid", "device", "stream"]
LaneKey = tuple[int, int, int, int]
"""The values of ``LANE``."""


def _lane_numbers(rows: pd.DataFrame) -> tuple[list[LaneKey], Ints]:
    """The lanes in their order, and for each row its lane's number: host threads, those with the most runtime calls
    first, then for each device its idle time and its streams by number."""
    keys: list[LaneKey] = list(map(tuple, rows[LANE].drop_duplicates().sort_values(LANE).to_numpy(np.int64).tolist()))
    calls = rows["kind"].isin([KIND[kind] for kind in ("launch", "call", "wait")])
    busy = rows["tid"][calls.to_numpy(bool)].value_counts().to_dict()
    ranked = sorted(keys, key=lambda key: (key[0] != HOST, -busy.get(key[1], 0), key[2], key[0], key[1], key[3]))
    place = np.array([ranked.index(key) for key in keys], dtype=np.int64)
    return ranked, place[rows.groupby(LANE, sort=True).ngroup().to_numpy(np.int64)] if len(rows) else np.zeros(
        0, np.int64
    )


def _bars(rows: pd.DataFrame, timeline: Timeline, most: int) -> pd.DataFrame:
    """The bars by lane, kind and time. ``link`` is then the number of a bar."""
    # Only waits and copies of one place, and only events of one lane and kind, may stand for one another.
    key = rows.groupby(["lane", "kind", "place"], sort=True).ngroup().to_numpy(np.int64)
    bars, bar = merged(rows.assign(key=key, near=_near(rows, timeline, most)), most)
    place = np.lexsort(tuple(bars[column].to_numpy(np.int64) for column in ("ts", "kind", "lane")))
    moved = np.empty(len(bars) + 1, dtype=np.int64)
    moved[place], moved[-1] = np.arange(len(bars)), -1
    found: pd.DataFrame = bars.iloc[place].reset_index(drop=True)
    return found.assign(link=moved[np.append(bar, -1)[found["link"].to_numpy(np.int64)]])


def _near(rows: pd.DataFrame, timeline: Timeline, most: int) -> Bools:
    """Which rows keep a bar of their own: those of the first steps, and those around the first wait or copy of each
    place; fewer of them where they alone would be more than half of all bars."""
    nothing = np.zeros(len(rows), dtype=bool)
    if len(rows) <= most:
        return nothing
    first = rows[(rows["place"] >= 0).to_numpy(bool)].sort_values("ts").drop_duplicates(["where", "place", "op"])
    around = _inside(rows, first["ts"].to_numpy(np.int64) - AROUND, first["end"].to_numpy(np.int64) + AROUND)
    marks = timeline.steps
    tries = [around, nothing]
    ts, end = marks["ts"].to_numpy(np.int64), marks["end"].to_numpy(np.int64)
    for count in range(1, min(FIRST_STEPS, len(marks)) + 1):
        tries.insert(0, around | _inside(rows, ts[:count], end[:count]))
    return next(near for near in tries if near.sum() <= most // 2)


def _inside(rows: pd.DataFrame, ts: Ints, end: Ints) -> Bools:
    """Which rows any of the spans from ``ts`` to ``end`` touches."""
    spans = Union(ts, end)
    after = np.searchsorted(spans.end, rows["ts"].to_numpy(np.int64))
    found: Bools = rows["end"].to_numpy(np.int64) >= np.append(spans.ts, np.iinfo(np.int64).max)[after]
    return found


def series(table: pd.DataFrame) -> tuple[Series, ...]:
    """The series of a table of bars that is in order of ``lane``, ``kind`` and ``ts``."""
    found = []
    first = 0
    sizes = table.groupby(["lane", "kind"], sort=True).size().reset_index().to_numpy(np.int64)
    for lane, kind, count in sizes.tolist():
        found.append(Series(lane=lane, kind=kind, first=first, count=count))
        first += count
    return tuple(found)


def columns(table: pd.DataFrame) -> dict[str, Column]:
    """Its columns ``BARS``."""
    return {name: packed(table[name].to_numpy(np.int64), steps=name == "ts") for name in BARS}


def links(table: pd.DataFrame) -> tuple[Column, Column]:
    """Which bars have a ``link``, and where it leads."""
    target = table["link"].to_numpy(np.int64)
    linked = np.flatnonzero(target >= 0)
    return packed(linked, steps=True), packed(target[linked], steps=True)


def _spots(bars: pd.DataFrame, timeline: Timeline) -> tuple[Ints, tuple[Spot, ...]]:
    """The distinct places and ops of the waits and copies, and for each bar the number of its own, −1 none."""
    found = np.full(len(bars), -1, dtype=np.int64)
    shown = np.flatnonzero(bars["place"].to_numpy(np.int64) >= 0)
    pairs = zip(bars["place"].to_numpy(np.int64)[shown].tolist(), bars["op"].to_numpy(object)[shown], strict=True)
    number: dict[Spot, int] = {}
    of_pair: dict[tuple[int, str], int] = {}
    for row, pair in zip(shown, pairs, strict=True):
        if pair not in of_pair:
            of_pair[pair] = number.setdefault(_spot(timeline, *pair), len(number))
        found[row] = of_pair[pair]
    return found, tuple(number)


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


def _lanes(order: list[LaneKey], timeline: Timeline) -> tuple[Lane, ...]:
    """Threads by name, with their number where a name is not enough; streams by number."""
    names = {tid: timeline.thread_name(tid) for where, tid, _, _ in order if where == HOST}
    shared = {name for name, count in Counter(names.values()).items() if count > 1}
    found = []
    for where, tid, device, stream in order:
        if where == HOST:
            found.append(Lane(label=_thread_label(names[tid], tid, shared), place="host", tid=tid))
            continue
        label = "idle" if where == IDLE else "stream" if stream < 0 else f"stream {stream}"
        found.append(Lane(label=label, place=PLACES[where], device=device, stream=stream if where == STREAM else None))
    return tuple(found)


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
