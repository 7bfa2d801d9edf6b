"""A timeline → its picture.

Up to ``MOST_ITEMS`` every event has a bar of its own. Beyond that, away from the first steps and from the first
occurrence of each wait and copy, short neighbours share one that says how many they are: nothing is dropped.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Literal

import numpy as np

from syncscope.patterns import compile_later
from syncscope.report.picture.detail import Bars, merge_rows
from syncscope.report.picture.lanes import BARS, KINDS, MEMORY, MOST_ITEMS, Column, Lane, Lanes, Series, StepMark
from syncscope.report.picture.pack import packed
from syncscope.report.picture.rows import HOST, IDLE, KIND, STREAM, Rows, picture_rows
from syncscope.report.picture.spots import Spots, find_lines
from syncscope.rules import Hit
from syncscope.timeline.intervals import Bools, Ints, Union
from syncscope.timeline.row_groups import number_groups, number_texts, passing
from syncscope.timeline.steps import step_of
from syncscope.timeline.tables import Objects
from syncscope.timeline.timeline import Timeline
from syncscope.trace.sets import different

FIRST_STEPS = 3
"""In so many of the first steps every event has a bar of its own, if these bars are at most half of all."""

AROUND = 2_000_000
"""Nanoseconds around the first occurrence of a wait or copy in which every event has one."""

ENGINE = compile_later(r"(torch::)?autograd::|\w+Backward\d*$")
NAMED_AUTOGRAD = "pt_autograd"
"""What autograd's engine runs, in older traces by the function's own name, and how the names of its threads begin
(torch/csrc/autograd/engine.cpp)."""
MOSTLY = 0.9
"""Of the time of a thread's ops: it is autograd's where so much is the engine's."""

PLACES: dict[int, Literal["host", "idle", "stream"]] = {HOST: "host", IDLE: "idle", STREAM: "stream"}


def draw_lanes(timeline: Timeline, hits: Sequence[Hit], max_items: int = MOST_ITEMS) -> Lanes:
    """The whole trace in at most about ``max_items`` bars. ``hits`` is what all rules found in it."""
    trace, spots = timeline.trace, Spots(timeline, hits)
    rows = picture_rows(timeline, spots)
    start = min((int(ts.min()) for ts in (rows.ts, timeline.steps.ts) if len(ts)), default=0)
    order, lane = _lane_numbers(rows)
    bars, lane = _bars(rows, lane, timeline, max_items)
    events = bars.merged[~np.isin(bars.kind, [KIND["idle"], KIND["exposed"]])]
    name, names = number_texts(bars.name)
    dur = bars.end - bars.ts
    table = {
        "ts": bars.ts - start, "dur": dur, "name": name, "bytes": bars.bytes,
        "memory": _memory_numbers(bars.memory),
        "spot": bars.spot, "merged": bars.merged, "gaps": dur - bars.busy,
    }  # fmt: skip
    return Lanes(
        path=trace.path,
        rank=trace.rank,
        start_ns=start,
        dur=int(rows.end.max()) - start if len(rows) else 0,
        steps=_steps(rows, timeline, start),
        names=tuple(map(str, names)),
        spots=spots.all,
        kernel_lines=find_lines(timeline, map(str, names)),
        lanes=_lanes(order, timeline, find_backward(rows)),
        series=find_series(lane, bars.kind),
        bars=pack_columns(table),
        links=pack_links(bars.link),
        blocked_ms_per_step=timeline.blocked_ms_per_step,
        events=int(events.sum()),
        events_merged=int(events[events > 1].sum()),
        sources=trace.recording.sources if trace.recording else {},
    )


def _memory_numbers(memory: Objects) -> Ints:
    """The numbers of texts (n,) in ``MEMORY``, 0 for another."""
    number, known = number_texts(memory)
    return np.array([MEMORY.index(text) if text in MEMORY else 0 for text in known], dtype=np.int64)[number]


def _steps(rows: Rows, timeline: Timeline, start: int) -> tuple[StepMark, ...]:
    marks = timeline.steps
    if not len(marks):
        return ()
    until = marks.end.copy()
    launching = np.flatnonzero((rows.link >= 0) & (rows.where == HOST))
    step = step_of(timeline.steps, rows.ts[launching])
    np.maximum.at(until, step[step >= 0], rows.end[rows.link[launching]][step >= 0])
    columns = (marks.number.tolist(), marks.ts.tolist(), marks.dur.tolist(), until.tolist())
    return tuple(
        StepMark(number=number, ts=ts - start, dur=dur, until=end - start)
        for number, ts, dur, end in zip(*columns, strict=True)
    )


LaneKey = tuple[int, int, int, int]
"""``where``, ``tid``, ``device`` and ``stream`` of a lane's rows."""


def _lane_numbers(rows: Rows) -> tuple[list[LaneKey], Ints]:
    """The lanes in their order, and for each row its lane's number: host threads, those with the most runtime calls
    first, then for each device its idle time and its streams by number."""
    number, first = _combinations(rows.where, rows.tid, rows.device, rows.stream)
    of_first = rows.take(first)
    columns = (of_first.where.tolist(), of_first.tid.tolist(), of_first.device.tolist(), of_first.stream.tolist())
    keys: list[LaneKey] = list(zip(*columns, strict=True))
    calls = np.isin(rows.kind, [KIND[kind] for kind in ("launch", "call", "wait")])
    busy = Counter(rows.tid[calls].tolist())
    ranked = sorted(keys, key=lambda key: (key[0] != HOST, -busy[key[1]], key[2], key[0], key[1], key[3]))
    place = np.array([ranked.index(key) for key in keys], dtype=np.int64)
    return ranked, place[number]


def _combinations(*columns: Ints) -> tuple[Ints, Ints]:
    """For each row (n,) the number of its combination of values, in their order, and the first row of each."""
    number = number_groups(*columns)
    return number, np.unique(number, return_index=True)[1].astype(np.int64)


def _bars(rows: Rows, lane: Ints, timeline: Timeline, most: int) -> tuple[Bars, Ints]:
    """The bars by lane, kind and time, and the lane of each. ``link`` is then the number of a bar."""
    # Only waits and copies of the same findings, and only events of one lane and kind, may stand for one another.
    key, first = _combinations(lane, rows.kind, rows.spot)
    bars, bar = merge_rows(rows, key, lane * len(KINDS) + rows.kind, _near(rows, timeline, most), most)
    return bars.replace(link=np.append(bar, -1)[bars.link]), lane[first][bars.key]


def _near(rows: Rows, timeline: Timeline, most: int) -> Bools:
    """Which rows keep a bar of their own: those of the first steps, and those around the first wait or copy of each
    spot; fewer of them where they alone would be more than half of all bars."""
    nothing = np.zeros(len(rows), dtype=bool)
    if len(rows) <= most:
        return nothing
    about = rows.take(rows.spot >= 0)
    about = about.take(np.argsort(about.ts, kind="stable"))
    _, first = _combinations(about.where, about.spot)
    around = _inside(rows, about.ts[first] - AROUND, about.end[first] + AROUND)
    steps = timeline.steps
    tries = [around, nothing]
    for many in range(1, min(FIRST_STEPS, len(steps)) + 1):
        tries.insert(0, around | _inside(rows, steps.ts[:many], steps.end[:many]))
    return next(near for near in tries if near.sum() <= most // 2)


def _inside(rows: Rows, ts: Ints, end: Ints) -> Bools:
    """Which rows any of the spans from ``ts`` to ``end`` touches."""
    spans = Union(ts, end)
    after = np.searchsorted(spans.end, rows.ts)
    touched: Bools = rows.end >= np.append(spans.ts, np.iinfo(np.int64).max)[after]
    return touched


def find_series(lane: Ints, kind: Ints) -> tuple[Series, ...]:
    """The series of bars that are in order of ``lane`` (n,) and ``kind`` (n,)."""
    series = []
    _, first = _combinations(lane, kind)
    for begin, end in pairwise([*first.tolist(), len(lane)]):
        series.append(Series(lane=int(lane[begin]), kind=int(kind[begin]), first=begin, count=end - begin))
    return tuple(series)


def pack_columns(table: Mapping[str, Ints]) -> dict[str, Column]:
    """The columns ``BARS``."""
    return {name: packed(table[name], steps=name == "ts") for name in BARS}


def pack_links(link: Ints) -> tuple[Column, Column]:
    """Which bars have a ``link`` (n,), and where it leads."""
    linked = np.flatnonzero(link >= 0)
    return packed(linked, steps=True), packed(link[linked], steps=True)


def find_backward(rows: Rows) -> set[int]:
    """The threads (tid) on which autograd runs the backward pass, and little else."""
    ops = np.flatnonzero(rows.kind == KIND["op"])
    engine = passing(rows.name[ops], lambda name: ENGINE.match(str(name)))
    found = set()
    for tid in different(rows.tid[ops[engine]]).tolist():
        mine = rows.tid[ops] == tid
        ts, end, its = rows.ts[ops[mine]], rows.end[ops[mine]], engine[mine]
        covered = Union(ts[its], end[its]).within(ts, end)
        if covered.sum() >= MOSTLY * (end - ts).sum():
            found.add(tid)
    return found


def _lanes(order: list[LaneKey], timeline: Timeline, backward: set[int]) -> tuple[Lane, ...]:
    """Threads by name, with their number where a name is not enough; streams by number."""
    names = {tid: timeline.thread_name(tid) for where, tid, _, _ in order if where == HOST}
    autograd = {tid for tid, name in names.items() if tid in backward or (name or "").startswith(NAMED_AUTOGRAD)}
    autograd |= {tid for tid in _native_launchers(timeline) if names.get(tid, "") is None}
    names |= dict.fromkeys(autograd, "autograd")
    shared = {name for name, count in Counter(names.values()).items() if count > 1}
    lanes = []
    for where, tid, device, stream in order:
        if where == HOST:
            lanes.append(Lane(label=_thread_label(names[tid], tid, shared), place="host", tid=tid))
            continue
        label = "idle" if where == IDLE else "stream" if stream < 0 else f"stream {stream}"
        lanes.append(Lane(label=label, place=PLACES[where], device=device, stream=stream if where == STREAM else None))
    return tuple(lanes)


def _native_launchers(timeline: Timeline) -> set[int]:
    """The threads (tid) that launch and, as our recording shows, are not Python's: autograd's engine has the only ones
    of PyTorch. A recording without ops tells no more of them."""
    if timeline.trace.recording is None or len(timeline.ops):
        return set()
    calls = timeline.calls
    return set(different(calls.tid[calls.role == "launch"]).tolist())


def _thread_label(name: str | None, tid: int, shared: set[str | None]) -> str:
    if name is None:
        return f"thread {tid}"
    return f"{name} {tid}" if name in shared else name
