"""The device's part of a program: for each launch the activity it put on a stream, and what the device took for it."""

from __future__ import annotations

import numpy as np
import pandas as pd

from syncscope.timeline import Timeline
from syncscope.timeline.intervals import Bools, Floats, Ints, Union

ACTIVITIES = {
    "stream": "int64",  # number of the stream, −1 for a call that launched nothing
    "starts": "float64", "ends": "float64",  # ns in the trace, since the first step began; nan none
    "dur": "float64",  # ns
    "device": "int64", "kind": "int64",  # of the first row: 0 kernel, 1 memcpy, 2 memset; −1 none
    "engine": "int64",  # 0 a copy to the device, 1 a copy to the host, 2 a collective, −1 none of them
    "kernel": "bool", "pageable": "bool",
    "alone": "bool",  # a kernel beside which no other stream computed
    "blocks": "bool",  # the launching call returns only when the activity is done
}  # fmt: skip
"""A launch of several rows (a graph) is one activity, from the first begin to the last end."""

TIMING = {
    "lat": "float64",  # ns from the return of the launching call (its begin where it blocks) to the earliest start
    "gap": "float64",  # ns that the stream needs between the activity before and this one
    "hop": "float64",  # ns from the end of what an event made it wait for to its start
}

JUST = 5_000
"""Nanoseconds within which one thing followed at once on another."""

EARLY = 500
"""Nanoseconds by which the device's times may be wrong."""

GAP = 1_000.0
LATENCY = 2_000.0
"""Nanoseconds between activities of a stream and from launch to start, where the trace shows none."""

HOP = 15_000
"""Nanoseconds that an event takes to let another stream go on, at most."""

MOST_STREAMS = 1 << 32
"""Streams are numbered below this on each device."""

LAUNCHES = ("launch", "graph-launch", "copy", "copy-sync", "fill")


def stream_numbers(device: pd.DataFrame) -> tuple[Ints, dict[tuple[int, int], int]]:
    """For each row of ``Trace.device`` the number of its stream, and the number of each (device, stream)."""
    where, stream = device["device"].to_numpy(np.int64), device["stream"].to_numpy(np.int64)
    # An unknown one is −1, so what is added lies between 0 and the most.
    codes, keys = pd.factorize(where * MOST_STREAMS + stream + 1)
    pairs = (divmod(int(key), MOST_STREAMS) for key in keys)
    return codes.astype(np.int64), {(device, stream - 1): number for number, (device, stream) in enumerate(pairs)}


def activities(timeline: Timeline, host: pd.DataFrame) -> pd.DataFrame:
    """``ACTIVITIES`` for the items of ``host``."""
    found = _by_item(timeline, host)
    found["dur"] = (found["ends"] - found["starts"]).fillna(0.0)
    found["alone"] = _alone(found)
    found["blocks"] = _blocking(timeline, host, found)
    return found


def _by_item(timeline: Timeline, host: pd.DataFrame) -> pd.DataFrame:
    device = timeline.trace.device
    base = int(timeline.steps["ts"].min())
    collective = (device["collective"] != "").to_numpy(bool)
    rows: pd.DataFrame = pd.DataFrame({
        "item": _items(timeline, host), "stream": stream_numbers(device)[0],
        "starts": (device["ts"] - base).astype(float), "ends": (device["end"] - base).astype(float),
        "device": device["device"], "kind": device["kind"].cat.codes,
        "engine": np.select([device["direction"] == "HtoD", device["direction"] == "DtoH", collective], [0, 1, 2], -1),
        "kernel": (device["kind"] == "kernel").to_numpy(bool) & ~collective,
        "pageable": (device["memory"] == "pageable").to_numpy(bool),
    })  # fmt: skip
    how = dict.fromkeys(("stream", "device", "kind", "engine"), "first")
    how |= {"starts": "min", "ends": "max", "kernel": "any", "pageable": "any"}
    found: pd.DataFrame = rows[rows["item"] >= 0].groupby("item").agg(how).reindex(host.index)
    whole, flags = ["stream", "device", "kind", "engine"], ["kernel", "pageable"]
    found[whole] = found[whole].fillna(-1).astype("int64")
    found[flags] = found[flags] == True  # noqa: E712 (missing is no)
    return found


def _items(timeline: Timeline, host: pd.DataFrame) -> Ints:
    """For each row of the device its item: that of its launch, or its own where the trace lacks the launch."""
    of_call = np.full(len(timeline.calls) + 1, -1, dtype=np.int64)
    of_row = np.full(len(timeline.trace.device) + 1, -1, dtype=np.int64)
    for column, table in (("call", of_call), ("orphan", of_row)):
        rows = host[column].to_numpy(np.int64)
        table[rows[rows >= 0]] = np.flatnonzero(rows >= 0)
    found: Ints = np.maximum(of_call[timeline.launch], of_row[:-1])
    return found


def _alone(found: pd.DataFrame) -> Bools:
    """Kernels with no kernel of another stream beside them: two such would have to share the compute units."""
    kernel = found["kernel"].to_numpy(bool)
    starts, ends = (found[c].fillna(0).to_numpy().astype(np.int64) for c in ("starts", "ends"))
    where, stream = found["device"].to_numpy(np.int64), found["stream"].to_numpy(np.int64)
    alone = kernel.copy()
    for number in np.unique(stream[kernel]):
        mine = kernel & (stream == number)
        others = kernel & (stream != number) & (where == where[mine][0])
        alone[mine] = Union(starts[others], ends[others]).within(starts[mine], ends[mine]) == 0
    return alone


def _blocking(timeline: Timeline, host: pd.DataFrame, found: pd.DataFrame) -> Bools:
    """Launches that return only when their activity is done: copies that wait, copies from or to pageable memory that
    had begun when the call returned, and every launch under ``CUDA_LAUNCH_BLOCKING=1``."""
    role = np.append(timeline.calls["role"].astype(object).to_numpy(), "")[host["call"].to_numpy(np.int64)]
    launched = (found["stream"] >= 0).to_numpy(bool) & np.isin(role, LAUNCHES)
    copies = found["engine"].isin((0, 1)).to_numpy(bool) & found["pageable"].to_numpy(bool)
    staged = copies & (host["end"].to_numpy() > found["starts"].to_numpy())
    result: Bools = launched & ((role == "copy-sync") | staged | timeline.launch_blocking)
    return result


def timing(host: pd.DataFrame, found: pd.DataFrame, held: Floats) -> dict[str, Floats]:
    """``TIMING`` of each item. ``held`` (n,) is the end of what events made it wait for, −inf for nothing.

    An activity that began when its launch or its stream let it tells that distance; for what was held by another
    thing, and for the distance that did not matter, the median of its kind stands in.
    """
    blocks, stream = found["blocks"].to_numpy(bool), found["stream"].to_numpy(np.int64)
    launched = np.where(blocks, host["begin"].to_numpy(), host["end"].to_numpy())
    starts, ends = found["starts"].to_numpy(), found["ends"].to_numpy()
    before = _before_in(stream, ends)
    hop, others = starts - held, _held_by_others(found)
    free = np.maximum(before, launched)
    by_event = (hop >= -EARLY) & (hop <= HOP) & (held > free)
    explained = by_event | (at_once(starts, others) & (others > free))
    idle = (stream >= 0) & (before <= launched) & ~explained & (host["chain"] >= 0).to_numpy(bool)
    queued = (stream >= 0) & ~idle & ~explained
    kind = found["kind"].to_numpy(np.int64) + 3 * blocks
    distance, pause = starts - launched, np.maximum(starts - np.maximum(before, 0.0), 0.0)
    return {
        "lat": np.where(idle, distance, _medians(distance, idle, kind, LATENCY)),
        "gap": np.where(queued, pause, _medians(pause, queued & (pause < JUST), kind, GAP)),
        "hop": np.where(by_event, np.maximum(hop, 0.0), _medians(hop, by_event, kind, GAP)),
    }


def at_once(starts: Floats, ends: Floats) -> Bools:
    """Which activities began just when others ended."""
    found: Bools = (starts >= ends - EARLY) & (starts <= ends + JUST)
    return found


def _before_in(stream: Ints, ends: Floats) -> Floats:
    """The end of the activity before each in its stream, −inf none."""
    found = np.full(len(stream), -np.inf)
    for number in range(int(stream.max(initial=-1)) + 1):
        rows = np.flatnonzero(stream == number)
        found[rows[1:]] = np.maximum.accumulate(ends[rows])[:-1]
    return found


def _held_by_others(found: pd.DataFrame) -> Floats:
    """The end of the last launched activity before each that another stream had on the same copy engine, or of the
    last kernel of another stream that left no compute unit free; −inf none."""
    stream, ends = found["stream"].to_numpy(np.int64), found["ends"].to_numpy()
    held = np.full(len(found), -np.inf)
    alone, engine = found["alone"].to_numpy(bool), found["engine"].to_numpy(np.int64)
    for group in (alone, engine == 0, engine == 1):
        for number in np.unique(stream[group]):
            others = np.maximum.accumulate(np.where(group & (stream != number), ends, -np.inf))
            mine = group & (stream == number)
            held[mine] = np.maximum(held[mine], others[mine])
    return held


def _medians(values: Floats, known: Bools, kind: Ints, default: float) -> Floats:
    """The median of what is known of each kind, else of all that is known."""
    found = np.full(len(values), float(np.median(values[known])) if known.any() else default)
    for number in np.unique(kind[known]):
        found[kind == number] = np.median(values[known & (kind == number)])
    return found
