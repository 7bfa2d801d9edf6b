"""A trace as a program that can be run again: items in the order of the host, and what each of them waits for.

The time that an item took in the trace is split here into host work before and inside the call, the time from launch to
activity, and what a wait waited for.
"""

from __future__ import annotations

from functools import cached_property

import msgspec
import numpy as np

from syncscope.estimate.dependencies import (
    Streams,
    Targets,
    carry_over,
    find_events,
    find_host_waits,
    find_stream_waits,
    held_until,
)
from syncscope.estimate.device import find_device_part, find_timing, number_streams
from syncscope.estimate.host import find_host_part, find_loading, recorded_steps
from syncscope.estimate.items import DevicePart, HostPart, Items
from syncscope.estimate.profiler_cost import MEASURED, Costs, profiler_cost
from syncscope.timeline import Timeline
from syncscope.timeline.intervals import Floats, Ints
from syncscope.trace.quantiles import median

QUEUE = 1022
"""Launches that a stream can queue, measured with CUDA on an H200. A launch beyond that waits for the oldest to end."""

MOST_CALLS = 300_000
"""Calls of a trace without steps up to which it is replayed as one step."""

FULL = 0.85
"""A launch that takes long counts as blocked by the queue if at least this share of ``QUEUE`` is outstanding."""


class Program(msgspec.Struct, frozen=True, dict=True):
    """The recorded steps of a trace, ready to run again in ``replay.replay``."""

    items: Items
    targets: Targets
    steps: int
    workers: bool | None
    """Whether worker processes make the batches that the steps wait for; ``None`` unknown."""
    host_ns: float
    """From the begin of the first step to the end of the last on the host."""
    device_ns: float
    """From the begin of the first step until the device had finished all that the steps launched."""
    streams: tuple[str, ...]
    """Names by number."""
    one_engine: bool
    """The device has one engine for copies in both directions."""

    @property
    def chains(self) -> int:
        return int(self.items.chain.max()) + 1

    @cached_property
    def _item_of_call(self) -> Ints:
        """For each row of ``Timeline.calls`` up to the last one inside the steps its item, −1 outside the steps. One
        more −1 stands for all calls behind, and for no call."""
        call = self.items.call
        item = np.full(int(call.max(initial=-1)) + 2, -1, dtype=np.int64)
        item[call[call >= 0]] = np.flatnonzero(call >= 0)
        return item

    def items_of(self, calls: Ints) -> Ints:
        """The item of each row of ``Timeline.calls`` (n,), −1 outside the steps and for no call (−1)."""
        return self._item_of_call[np.minimum(calls, len(self._item_of_call) - 1)]


def compile_program(timeline: Timeline, costs: Costs = MEASURED) -> Program | None:
    """The program of the recorded steps; ``None`` for a trace without calls or device activity, and for one without
    steps that is too long to count as one."""
    tables, steps = timeline, recorded_steps(timeline)
    if not len(tables.calls) or timeline.device is None:
        return None
    if not len(tables.steps) and len(tables.calls) > MOST_CALLS:
        return None
    host = find_host_part(timeline)
    device = find_device_part(timeline, host)
    if not (device.stream >= 0).any():
        return None
    numbers = number_streams(tables.activities)[1]
    streams, events = Streams(device, numbers), find_events(timeline, host, device)
    holds = find_stream_waits(timeline, host, device, streams, events)
    timing = find_timing(host, device, held_until(holds, streams, len(host)))
    waits = find_host_waits(timeline, host, device, streams, events)
    targets = carry_over(Targets(waits.targets, holds), host.step)
    wait = waits.wait.copy()
    wait[sorted(targets.waits)] = True
    loading = find_loading(timeline, host)
    columns = vars(host) | vars(device) | vars(timing) | {"own": _without_full_queue(host, device, waits.own)}
    items = Items(
        **columns,
        profiler=profiler_cost(timeline, host, device, costs),
        wait=wait, back=waits.back, loading=loading.length, period=loading.period, later=np.full(len(host), np.nan),
    )  # fmt: skip
    host_ns, device_ns = float(host.end[host.mark].max()), float(np.nanmax(device.ends))
    if not (host_ns > 0 and device_ns > 0):
        return None
    return Program(
        items=items,
        targets=targets,
        steps=len(steps),
        workers=loading.workers,
        host_ns=host_ns,
        device_ns=device_ns,
        one_engine=any(d.id == timeline.device and d.copy_engines == 1 for d in timeline.trace.devices),
        streams=tuple(f"stream {name}" for _, name in numbers),
    )


def _without_full_queue(host: HostPart, device: DevicePart, own: Floats) -> Floats:
    """Host work inside each call (n,), without the time for which a launch waited for a place in a full queue."""
    own, stream = own.copy(), device.stream
    for number in range(int(stream.max()) + 1):
        rows = np.flatnonzero(stream == number)
        started = np.sort(device.starts[rows])
        outstanding = np.arange(len(rows)) - np.searchsorted(started, host.begin[rows])
        usual = median(own[rows]) if len(rows) else 0.0
        full = (outstanding >= FULL * QUEUE) & (own[rows] > 10 * usual)
        own[rows[full]] = usual
    return own
