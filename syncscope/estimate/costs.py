"""What the profiler itself costs the host, and how fast copies are where a trace does not show it. All measured."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd

from syncscope.timeline import Timeline
from syncscope.timeline.intervals import Floats


@dataclass(frozen=True)
class Costs:
    """Nanoseconds of host time that recording adds, an event.

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


def profiler_cost(timeline: Timeline, items: pd.DataFrame, costs: Costs) -> Floats:
    """What of each item's host work is the profiler's, ns."""
    called, launched = (items["call"] >= 0).to_numpy(bool), (items["stream"] >= 0).to_numpy(bool)
    tax = np.where(called, np.where(launched, costs.launch, costs.call), 0.0)
    trace, recording = timeline.trace, timeline.trace.recording
    base = int(timeline.steps["ts"].min())
    sites: pd.DataFrame = pd.DataFrame(
        [(event.end_ns - trace.base_ns, event.tid, event.kind) for event in recording.sites] if recording else (),
        columns=["ts", "tid", "kind"],
    )
    warned = sites["kind"] == "warning"
    chain_of = _chain_of(timeline, items)
    recorded = ((sites[warned], costs.warning), (sites[~warned], costs.entry))
    for table, cost in (*recorded, (trace.ops, costs.op), (trace.frames, costs.frame)):
        if len(table) and cost:
            _charge(tax, table["ts"].to_numpy(np.int64) - base, table["tid"].map(chain_of), items, cost)
    return tax


def _chain_of(timeline: Timeline, items: pd.DataFrame) -> dict[int, int]:
    called = items["call"].to_numpy(np.int64)
    tids = timeline.calls["tid"].to_numpy(np.int64)[called[called >= 0]]
    return dict(zip(tids.tolist(), items["chain"].to_numpy(np.int64)[called >= 0].tolist(), strict=True))


def _charge(tax: Floats, time: np.ndarray, chain: pd.Series, items: pd.DataFrame, cost: float) -> None:
    """Add ``cost`` for each event to the item of its chain that ends next: its host work holds the event."""
    chains, ends = items["chain"].to_numpy(np.int64), items["end"].to_numpy()
    where = chain.fillna(-1).to_numpy(np.int64)
    for number in np.unique(where[where >= 0]):
        rows = np.flatnonzero(chains == number)
        mine = np.searchsorted(np.maximum.accumulate(ends[rows]), time[(where == number) & (time >= 0)], side="left")
        tax[rows] += cost * np.bincount(mine[mine < len(rows)], minlength=len(rows))
