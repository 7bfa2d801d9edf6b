"""The device's part of a program: for each launch the activity it put on a stream, and what the device took for it."""

from __future__ import annotations

import numpy as np

from syncscope.estimate.clocks import classify
from syncscope.estimate.host import do_items, recorded_steps
from syncscope.estimate.items import COLLECTIVE, TO_DEVICE, TO_HOST, DevicePart, HostPart, Timing
from syncscope.timeline import Timeline
from syncscope.timeline.intervals import Bools, Floats, Ints, Union
from syncscope.timeline.tables import Activities
from syncscope.trace.quantiles import median
from syncscope.trace.sets import different

KINDS = ("kernel", "memcpy", "memset")

JUST = 5_000
"""Nanoseconds within which one thing followed at once on another."""

EARLY = 500
"""Nanoseconds by which the device's times may be wrong."""

GAP = 1_000.0
LATENCY = 2_000.0
"""Nanoseconds between activities of a stream and from launch to start, where the trace shows none."""

HOP = 15_000
"""Nanoseconds that an event takes to let another stream go on, at most."""

STAGED_RATE = 30.0
"""Bytes in a nanosecond that a copy from pageable memory reaches only where all of it was in pinned memory before it
began: 46 of 0.8 MB, at most 20 of those of 2 MB and more, on an H200."""

MOST_STREAMS = 1 << 32
"""Streams are numbered below this on each device."""

LAUNCHES = ("launch", "graph-launch", "copy", "copy-sync", "fill")


def number_streams(device: Activities) -> tuple[Ints, dict[tuple[int, int], int]]:
    """For each activity the number of its stream, and the number of each (device, stream): in order of first use."""
    # An unknown stream is −1, so what is added lies between 0 and the most.
    keys, first, codes = np.unique(
        device.device * MOST_STREAMS + device.stream + 1, return_index=True, return_inverse=True
    )
    order = np.argsort(first)
    number = np.empty(len(keys), dtype=np.int64)
    number[order] = np.arange(len(keys))
    pairs = (divmod(int(key), MOST_STREAMS) for key in keys[order])
    return number[codes], {(where, stream - 1): n for n, (where, stream) in enumerate(pairs)}


def find_device_part(timeline: Timeline, host: HostPart) -> DevicePart:
    """The activities that the items of ``host`` launched."""
    device = timeline.activities
    base = int(recorded_steps(timeline).ts.min())
    collective = device.collective != ""
    engines = [device.direction == "HtoD", device.direction == "DtoH", collective]
    kinds = [device.kind == kind for kind in KINDS]
    item = _items(timeline, host)
    # Activities of an item lie side by side: the first says what it is, all of them how long it takes.
    rows = np.flatnonzero(item >= 0)
    rows = rows[np.argsort(item[rows], kind="stable")]
    begins = np.flatnonzero(np.diff(item[rows], prepend=-1))
    first, items = rows[begins], item[rows[begins]]

    def spread(values: Ints | Floats | Bools, missing: float) -> np.ndarray:
        column = np.full(len(host), missing, dtype=values.dtype)
        column[items] = values
        return column

    def any_of(mask: Bools) -> Bools:
        return spread(np.logical_or.reduceat(mask[rows], begins) if len(begins) else mask[:0], False)

    def of_first(values: Ints) -> Ints:
        return spread(values[first], -1)

    stream = of_first(number_streams(device)[0])
    starts = spread(np.minimum.reduceat((device.ts[rows] - base).astype(float), begins), np.nan)
    ends = spread(np.maximum.reduceat((device.end[rows] - base).astype(float), begins), np.nan)
    where, kernel = of_first(device.device), any_of(kinds[0] & ~collective)
    engine, pageable = (
        of_first(np.select(engines, [TO_DEVICE, TO_HOST, COLLECTIVE], -1)),
        any_of(device.memory == "pageable"),
    )

    def share(values: Floats) -> Floats:
        """The mean over an item's activities, weighted by their lengths."""
        lengths = np.maximum((device.end - device.ts)[rows].astype(float), 1.0)
        if not len(begins):
            return spread(lengths, 0.0)
        return spread(np.add.reduceat(values[rows] * lengths, begins) / np.add.reduceat(lengths, begins), 0.0)

    size = of_first(device.bytes)
    # Sent as fast as from pinned memory: it had been brought there as a whole, so the call waited for no device.
    at_once_sent = (ends > starts) & (size >= (ends - starts) * STAGED_RATE)
    kinds_of_work = classify(device.name)
    return DevicePart(
        stream=stream, starts=starts, ends=ends, dur=np.nan_to_num(ends - starts), device=where,
        kind=of_first(np.select(kinds, range(len(KINDS)), -1)), engine=engine, kernel=kernel, pageable=pageable,
        alone=_alone(kernel, where, stream, starts, ends),
        blocks=_blocking(
            timeline, host, stream, starts, pageable & ((engine == TO_DEVICE) & ~at_once_sent | (engine == TO_HOST))
        ),
        computes=share(kinds_of_work.computes), moves=share(kinds_of_work.moves), draws=share(kinds_of_work.draws),
    )  # fmt: skip


def _items(timeline: Timeline, host: HostPart) -> Ints:
    """For each row of the device its item: that of its launch, or its own where the trace lacks the launch."""
    of_call = np.full(len(timeline.calls) + 1, -1, dtype=np.int64)
    of_row = np.full(len(timeline.activities) + 1, -1, dtype=np.int64)
    for rows, table in ((host.call, of_call), (host.orphan, of_row)):
        table[rows[rows >= 0]] = np.flatnonzero(rows >= 0)
    item: Ints = np.maximum(of_call[timeline.activities.launch], of_row[:-1])
    return item


def _alone(kernel: Bools, device: Ints, stream: Ints, starts: Floats, ends: Floats) -> Bools:
    """Kernels with no kernel of another stream beside them: two such would have to share the compute units."""
    begin, end = np.nan_to_num(starts).astype(np.int64), np.nan_to_num(ends).astype(np.int64)
    alone = kernel.copy()
    for number in different(stream[kernel]):
        mine = kernel & (stream == number)
        others = kernel & (stream != number) & (device == device[mine][0])
        alone[mine] = Union(begin[others], end[others]).within(begin[mine], end[mine]) == 0
    return alone


def _blocking(timeline: Timeline, host: HostPart, stream: Ints, starts: Floats, pageable_copy: Bools) -> Bools:
    """Launches that return only when their activity is done: copies that wait, copies from or to pageable memory that
    had begun when the call returned, and every launch under ``CUDA_LAUNCH_BLOCKING=1``."""
    launched = (stream >= 0) & do_items(timeline, host, LAUNCHES)
    staged = pageable_copy & (host.end > starts)
    blocks: Bools = launched & (do_items(timeline, host, ["copy-sync"]) | staged | timeline.launch_blocking)
    return blocks


def find_timing(host: HostPart, device: DevicePart, held: Floats) -> Timing:
    """The timing of each item. ``held`` (n,) is the end of what events made it wait for, −inf for nothing.

    An activity shows the distance to its launch if it began as soon as it was launched, and the distance to the
    activity before it if it began as soon as that one was over. The median of its kind takes the place of a distance
    that it does not show."""
    blocks, stream, starts = device.blocks, device.stream, device.starts
    launched = np.where(blocks, host.begin, host.end)
    before = _end_before(stream, device.ends)
    hop, others = starts - held, _held_by_others(device)
    free = np.maximum(before, launched)
    by_event = (hop >= -EARLY) & (hop <= HOP) & (held > free)
    explained = by_event | (at_once(starts, others) & (others > free))
    idle = (stream >= 0) & (before <= launched) & ~explained & (host.chain >= 0)
    queued = (stream >= 0) & ~idle & ~explained
    kind = device.kind + len(KINDS) * blocks
    distance, pause = starts - launched, np.maximum(starts - np.maximum(before, 0.0), 0.0)
    return Timing(
        lat=np.where(idle, distance, _medians(distance, idle, kind, LATENCY)),
        gap=np.where(queued, pause, _medians(pause, queued & (pause < JUST), kind, GAP)),
        hop=np.where(by_event, np.maximum(hop, 0.0), _medians(hop, by_event, kind, GAP)),
    )


def at_once(starts: Floats, ends: Floats) -> Bools:
    """Which activities began just when others ended."""
    soon: Bools = (starts >= ends - EARLY) & (starts <= ends + JUST)
    return soon


def _end_before(stream: Ints, ends: Floats) -> Floats:
    """The end of the activity before each in its stream, −inf none."""
    before = np.full(len(stream), -np.inf)
    for number in range(int(stream.max(initial=-1)) + 1):
        rows = np.flatnonzero(stream == number)
        before[rows[1:]] = np.maximum.accumulate(ends[rows])[:-1]
    return before


def _held_by_others(device: DevicePart) -> Floats:
    """The end of the last launched activity before each that another stream had on the same copy engine, or of the
    last kernel of another stream that left no compute unit free; −inf none."""
    stream, ends = device.stream, device.ends
    held = np.full(len(stream), -np.inf)
    for group in (device.alone, device.engine == TO_DEVICE, device.engine == TO_HOST):
        for number in different(stream[group]):
            others = np.maximum.accumulate(np.where(group & (stream != number), ends, -np.inf))
            mine = group & (stream == number)
            held[mine] = np.maximum(held[mine], others[mine])
    return held


def _medians(values: Floats, known: Bools, kind: Ints, default: float) -> Floats:
    """The median of what is known of each kind, else of all that is known."""
    medians = np.full(len(values), median(values[known]) if known.any() else default)
    for number in different(kind[known]):
        medians[kind == number] = median(values[known & (kind == number)])
    return medians
