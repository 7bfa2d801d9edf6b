"""Find the steps of a trace that names none, from what the device ran again and again in the same order.

A model's layers repeat too. What tells steps from layers: a step repeats from the first row of the trace to the last,
without exception, because what comes before and after the layers belongs to the step; and it takes its input from the
host and gives something back, or it ends with an optimizer. Nine traces whose steps are known have this, and no other
trace of 32 has.
"""

from __future__ import annotations

import re
from typing import NamedTuple

import numpy as np

from syncscope.patterns import compile_later
from syncscope.trace.rows import Rows, most_common

LEAST_TIMES = 3
"""Repetitions, at least."""

LEAST_ROWS = 20
"""Device rows in a step, at least."""

MOST_PERIODS = 20
"""Lengths that are tried, at most."""

LEAST_KNOWN = 0.99
"""Share of the device rows whose launch must be in the trace."""

OPTIMIZERS = compile_later(r"multi_tensor_apply|FusedOptimizer|adam|sgd", re.IGNORECASE)
"""Kernels that no layer has."""


class Repetition(NamedTuple):
    """What repeats."""

    bounds: np.ndarray
    """When the host launched the first row of each step, ns (n + 1,)."""
    rows: int
    """Device rows of a step."""


def find_repetition(device: Rows, runtime: Rows, pid: int | None) -> Repetition | None:
    """The steps by what repeats; ``None`` where that is not certain. The last step, whose end nobody marks, is left
    out."""
    calls = runtime.take((runtime["pid"] == pid) & (runtime["correlation"] >= 0))
    if not len(calls):
        return None
    known, first_call = np.unique(calls["correlation"], return_index=True)
    slot = np.minimum(np.searchsorted(known, device["correlation"]), len(known) - 1)
    found = np.flatnonzero(known[slot] == device["correlation"])
    if len(found) < max(LEAST_KNOWN * len(device), LEAST_TIMES * LEAST_ROWS):
        return None
    found = found[device["device"][found] == most_common(device["device"][found])]
    found = found[np.lexsort((device["ts"][found], device["correlation"][found]))]
    launched = device.take(found)
    names = launched.texts["name"]
    period = _find_period(names.codes.astype(np.int64))
    if period is None:
        return None
    ends = names.are([OPTIMIZERS.search(name) is not None for name in names.names])[:period]
    direction = launched.texts["direction"].objects()[:period]
    inputs = np.flatnonzero(direction == "HtoD")
    if len(inputs) and (direction == "DtoH").any():
        begin = int(inputs[0])
    elif ends.any():
        begin = (int(np.flatnonzero(ends)[-1]) + 1) % period
    else:
        return None
    bounds = calls["ts"][first_call[slot[found]]][begin::period]
    return Repetition(bounds, period) if (np.diff(bounds) > 0).all() else None


def _find_period(sequence: np.ndarray) -> int | None:
    """The length of what the whole sequence repeats, the shortest; ``None`` without one, or where it has too few rows:
    some rounds of it together are no step."""
    counts = np.bincount(sequence)
    often = np.flatnonzero(counts >= LEAST_TIMES)
    rare = often[np.argsort(counts[often], kind="stable")][:MOST_PERIODS]
    apart = [np.diff(np.flatnonzero(sequence == name)) for name in rare.tolist()]
    # What occurs several times a step is as far from its own next step as from each of the others together.
    lengths = {int(steps[:many].sum()) for steps in apart for many in range(1, len(steps) // 2 + 1)}
    possible = sorted(length for length in lengths if length <= len(sequence) // LEAST_TIMES)
    period = next((n for n in possible[: 50 * MOST_PERIODS] if (sequence[n:] == sequence[:-n]).all()), None)
    return None if period is None or period < LEAST_ROWS else period
