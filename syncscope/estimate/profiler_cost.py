"""The host time that the profiler itself takes, as measured."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec
import numpy as np

from syncscope.estimate.host import recorded_steps
from syncscope.estimate.items import DevicePart, HostPart, Items
from syncscope.timeline import Timeline
from syncscope.timeline.intervals import Floats, Ints

LEAST_LEFT = 0.25
"""The least share of an item's host work that is left when the profiler's cost is taken off."""


class Costs(msgspec.Struct, frozen=True):
    """Nanoseconds of host time that recording one event adds.

    Measured on an H200 with torch 2.11 as the difference of recorded and bare steps that the host bounds. Where code
    is not warm a call costs up to three times as much; the scale of the host's work takes up what these leave.
    """

    launch: float = 2_900.0
    """A runtime call that gives the device something to do, by CUPTI."""
    call: float = 1_000.0
    """Any other runtime call."""
    warning: float = 4_500.0
    """A warning of a wait, with its stack."""
    entry: float = 1_000.0
    """A call of a Python entry point that the collector wraps."""
    op: float = 1_700.0
    """A PyTorch op, in full mode or another profiler's trace."""
    frame: float = 300.0
    """A Python frame of another profiler's trace with stacks."""


MEASURED = Costs()


def profiler_cost(timeline: Timeline, host: HostPart, device: DevicePart, costs: Costs) -> Floats:
    """The profiler's share of each item's host work (n,), ns."""
    cost = np.where(host.call >= 0, np.where(device.stream >= 0, costs.launch, costs.call), 0.0)
    base = int(recorded_steps(timeline).ts.min())
    threads, chains = _chain_of_threads(timeline, host)
    for time, tid, each in _recorded_events(timeline, costs):
        for thread, chain in zip(threads.tolist(), chains.tolist(), strict=True):
            if each and chain >= 0:
                _add(cost, time[tid == thread] - base, chain, host, each)
    return cost


def _recorded_events(timeline: Timeline, costs: Costs) -> Iterator[tuple[Ints, Ints, float]]:
    """For each kind of event besides calls: times since the trace's base in order, threads, and the cost of one."""
    trace, recording = timeline.trace, timeline.trace.recording
    sites = recording.sites if recording else ()
    for warned, cost in ((True, costs.warning), (False, costs.entry)):
        mine = sorted((event for event in sites if (event.kind == "warning") == warned), key=lambda event: event.end_ns)
        ends = np.array([event.end_ns - trace.base_ns for event in mine], dtype=np.int64)
        yield ends, np.array([event.tid for event in mine], dtype=np.int64), cost
    for table, cost in (("ops", costs.op), ("frames", costs.frame)):
        yield trace.rows[table]["ts"], trace.rows[table]["tid"], cost


def _chain_of_threads(timeline: Timeline, host: HostPart) -> tuple[Ints, Ints]:
    """Threads with calls inside the steps, ascending, and the chain of each."""
    called = host.call >= 0
    threads, first = np.unique(timeline.calls.tid[host.call[called]], return_index=True)
    return threads, host.chain[called][first]


def _add(cost: Floats, time: Ints, chain: int, host: HostPart, each: float) -> None:
    """Add the cost of ``each`` event to the item of its chain that ends next: its host work holds the event. ``time``
    is in order; what comes before the steps is not theirs."""
    rows = np.flatnonzero(host.chain == chain)
    ends = np.maximum.accumulate(host.end[rows]).astype(np.int64)
    ended = np.searchsorted(time, ends, side="right") - np.searchsorted(time, 0)
    cost[rows] += each * np.diff(np.maximum(ended, 0), prepend=0)


def without_profiler(items: Items) -> Items:
    """The items without the profiler's share of the host's work. It comes off the work before the call first."""
    less = np.minimum(items.profiler, (1 - LEAST_LEFT) * items.pre)
    own = np.maximum(items.own - (items.profiler - less), LEAST_LEFT * items.own)
    return items.replace(pre=items.pre - less, own=own)
