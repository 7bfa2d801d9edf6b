"""Find the steps of a trace that names none, from what the device ran again and again in the same order.

A model's layers repeat too. What tells steps from layers: a step repeats from the first row of the trace to the last,
without exception, because what comes before and after the layers belongs to the step; and it takes its input from the
host and gives something back, or it ends with an optimiser. Nine traces whose steps are known have this, and no other
trace of 32 has.
"""

from __future__ import annotations

import re
from typing import NamedTuple

import numpy as np
import pandas as pd

LEAST_TIMES = 3
"""Repetitions, at least."""

LEAST_ROWS = 20
"""Device rows in a step, at least."""

MOST_PERIODS = 20
"""Lengths that are tried, at most."""

LEAST_KNOWN = 0.99
"""Share of the device rows whose launch must be in the trace."""

OPTIMIZERS = re.compile(r"multi_tensor_apply|FusedOptimizer|adam|sgd", re.IGNORECASE)
"""Kernels that no layer has."""


class Repetition(NamedTuple):
    """What repeats."""

    bounds: np.ndarray
    """When the host launched the first row of each step, ns (n + 1,)."""
    rows: int
    """Device rows of a step."""


def find_repetition(device: pd.DataFrame, runtime: pd.DataFrame, pid: int | None) -> Repetition | None:
    """The steps by what repeats; ``None`` where that is not certain. The last step, whose end nobody marks, is left
    out."""
    calls = runtime[(runtime["pid"] == pid) & (runtime["correlation"] >= 0)].drop_duplicates("correlation")
    launched = device.merge(calls[["correlation", "ts"]], on="correlation", suffixes=("", "_launch"))
    if len(launched) < max(LEAST_KNOWN * len(device), LEAST_TIMES * LEAST_ROWS):
        return None
    busiest = launched["device"].value_counts().idxmax()
    launched = launched[launched["device"] == busiest].sort_values(["correlation", "ts"], kind="stable")
    names = launched["name"].astype("category").cat.remove_unused_categories()
    period = _find_period(names.cat.codes.to_numpy(np.int64))
    if period is None:
        return None
    ends = np.array([OPTIMIZERS.search(str(name)) is not None for name in names[:period]], dtype=bool)
    direction = launched["direction"][:period].astype(str).to_numpy()
    inputs = np.flatnonzero(direction == "HtoD")
    if len(inputs) and (direction == "DtoH").any():
        first = int(inputs[0])
    elif ends.any():
        first = (int(np.flatnonzero(ends)[-1]) + 1) % period
    else:
        return None
    bounds = launched["ts_launch"].to_numpy(np.int64)[first::period]
    return Repetition(bounds, period) if (np.diff(bounds) > 0).all() else None


def _find_period(sequence: np.ndarray) -> int | None:
    """The length of what the whole sequence repeats, the shortest; ``None`` without one."""
    counts = np.bincount(sequence)
    often = np.flatnonzero(counts >= LEAST_TIMES)
    rare = often[np.argsort(counts[often], kind="stable")][:MOST_PERIODS]
    apart = [np.diff(np.flatnonzero(sequence == name)) for name in rare.tolist()]
    # What occurs several times a step is as far from its own next step as from each of the others together.
    lengths = {int(steps[:many].sum()) for steps in apart for many in range(1, len(steps) // 2 + 1)}
    possible = sorted(length for length in lengths if LEAST_ROWS <= length <= len(sequence) // LEAST_TIMES)
    return next((n for n in possible[: 50 * MOST_PERIODS] if (sequence[n:] == sequence[:-n]).all()), None)
