"""Which recorded step a moment belongs to."""

from __future__ import annotations

import numpy as np
import pandas as pd

from syncscope.timeline.intervals import Ints


def step_of(steps: pd.DataFrame, ts: Ints) -> Ints:
    """For each time (n,), the row of ``steps`` (``model.STEPS``) that holds it, −1 outside all of them."""
    if not len(steps):
        return np.full(len(ts), -1, dtype=np.int64)
    slot = np.searchsorted(steps["ts"].to_numpy(np.int64), ts, side="right") - 1
    inside = (slot >= 0) & (ts < steps["end"].to_numpy(np.int64)[np.maximum(slot, 0)])
    return np.where(inside, slot, -1)


def span(steps: pd.DataFrame, device: pd.DataFrame, drained: int | None) -> tuple[int, int] | None:
    """From the first step's begin to the last step's end, or to when the device had ``drained`` where that was seen;
    without steps, from the device's first to its last activity; ``None`` when there is neither."""
    table = steps if len(steps) else device
    if not len(table):
        return None
    end = int(table["end"].max())
    return int(table["ts"].min()), max(end, drained) if drained is not None and len(steps) else end
