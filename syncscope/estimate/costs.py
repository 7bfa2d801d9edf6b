"""What the profiler itself costs the host, and how fast copies are where a trace does not show it. All measured."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd

from syncscope.timeline import Timeline
from syncscope.timeline.intervals import Floats


@dataclass(frozen=True)
class Costs:
    """Nanoseconds of host time that recording adds, an event."""

    call: float = 2_000.0
    """A runtime call, by CUPTI."""
    warning: float = 4_500.0
    """A warning of a wait, with its stack."""
    op: float = 1_000.0
    """A PyTorch op."""
    frame: float = 300.0
    """A Python frame."""


FREE = Costs(0.0, 0.0, 0.0, 0.0)
MEASURED = Costs()


def profiler_cost(timeline: Timeline, items: pd.DataFrame, costs: Costs) -> Floats:
    """What of each item's host work is the profiler's, ns."""
    tax = np.where((items["call"] >= 0).to_numpy(bool), costs.call, 0.0)
    trace, recording = timeline.trace, timeline.trace.recording
    base = int(timeline.steps["ts"].min())
    warned = [e for e in recording.sites if e.kind == "warning"] if recording else []
    warnings: pd.DataFrame = pd.DataFrame({
        "ts": np.array([e.end_ns for e in warned], dtype=np.int64) - trace.base_ns, "tid": [e.tid for e in warned],
    })  # fmt: skip
    chain_of = _chain_of(timeline, items)
    for table, cost in ((warnings, costs.warning), (trace.ops, costs.op), (trace.frames, costs.frame)):
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
