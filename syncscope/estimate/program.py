"""A trace as a program that can be run again: one item a runtime call, with the device activity that it launched.

Items are in the order of the host. What an item needs of the time it ran in the trace is taken apart here: host work
before and inside the call, how long the device held the activity after its launch, and what a wait waited for.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd

from syncscope.estimate.chains import HOST_ROWS, host_rows
from syncscope.estimate.costs import Costs, profiler_cost
from syncscope.estimate.device import ACTIVITIES, TIMING, activities, stream_numbers, timing
from syncscope.estimate.holds import find_holds, held_until
from syncscope.estimate.loading import find_loading
from syncscope.estimate.targets import Targets, carried_over
from syncscope.estimate.waits import find_waits
from syncscope.timeline import Timeline
from syncscope.timeline.intervals import Floats, Ints

ITEMS = {
    **HOST_ROWS,
    "tax": "float64",  # ns of the two that are the profiler's
    **ACTIVITIES, **TIMING,
    "wait": "bool",  # the host waits here for what ``Program.targets`` says
    "back": "float64",  # ns from the end of what it waited for to the return of the call
    "loading": "float64", "period": "float64",  # as in ``loading.Loading``
    "later": "float64",  # ns by which the last of the other ranks came later to a collective than this one; nan unknown
}  # fmt: skip
"""One row an item."""

QUEUE = 1022
"""A launch returns when the one so many before it in its stream is done: what CUDA queues, measured on an H200."""

FULL = 0.85
"""Share of ``QUEUE`` outstanding from which on a launch that takes long counts as blocked by it."""


@dataclass(frozen=True)
class Program:
    """The recorded steps of a trace, ready to run again in ``machine.replay``."""

    items: pd.DataFrame
    """``ITEMS``."""
    targets: Targets
    steps: int
    workers: bool | None
    """Whether worker processes make the batches that the steps wait for; ``None`` unknown."""
    item_of: Ints
    """For each row of ``Timeline.calls`` its item, −1 outside the steps."""
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
        return int(self.items["chain"].max()) + 1

    def rows(self, calls: Ints) -> list[int]:
        """Items of some rows of ``Timeline.calls``, those inside the steps."""
        found = self.item_of[calls]
        return sorted(found[found >= 0].tolist())


def compile_program(timeline: Timeline, costs: Costs) -> Program | None:
    """The program of the recorded steps; ``None`` for a trace without steps, calls or device activity."""
    if not len(timeline.steps) or not len(timeline.calls) or timeline.device is None:
        return None
    host = host_rows(timeline)
    found = activities(timeline, host)
    if not (found["stream"] >= 0).any():
        return None
    holds = find_holds(timeline, host, found)
    times = timing(host, found, held_until(holds, found))
    waits = find_waits(timeline, host, found)
    items = pd.concat([host, found], axis=1).assign(**times, wait=waits.wait, back=waits.back, own=waits.own)
    targets = carried_over(Targets(waits.targets, holds), items["step"].to_numpy(np.int64))
    items.loc[sorted(targets.waits), "wait"] = True
    items["own"] = _unblocked(items)
    loading = find_loading(timeline, items)
    items["loading"], items["period"] = loading.length, loading.period
    items["later"] = np.nan
    items["tax"] = profiler_cost(timeline, items, costs)
    item_of = np.full(len(timeline.calls), -1, dtype=np.int64)
    called = items["call"].to_numpy(np.int64)
    item_of[called[called >= 0]] = np.flatnonzero(called >= 0)
    host_ns, device_ns = float(items["end"][items["mark"]].max()), float(items["ends"].max())
    if not (host_ns > 0 and device_ns > 0):
        return None
    return Program(
        items=items,
        targets=targets,
        steps=len(timeline.steps),
        workers=loading.workers,
        item_of=item_of,
        host_ns=host_ns,
        device_ns=device_ns,
        one_engine=any(d.id == timeline.device and d.copy_engines == 1 for d in timeline.trace.devices),
        streams=tuple(f"stream {name}" for _, name in stream_numbers(timeline.trace.device)[1]),
    )


def _unblocked(items: pd.DataFrame) -> Floats:
    """Host work inside each call, without what launches waited for a place in a full queue."""
    own = items["own"].to_numpy().copy()
    begin, stream = items["begin"].to_numpy(), items["stream"].to_numpy(np.int64)
    for number in range(int(stream.max()) + 1):
        rows = np.flatnonzero(stream == number)
        started = np.sort(items["starts"].to_numpy()[rows])
        outstanding = np.arange(len(rows)) - np.searchsorted(started, begin[rows])
        usual = float(np.median(own[rows])) if len(rows) else 0.0
        full = (outstanding >= FULL * QUEUE) & (own[rows] > 10 * usual)
        own[rows[full]] = usual
    return own
