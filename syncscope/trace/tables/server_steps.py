"""Find the steps of a server that marks each batch which it runs: vLLM and SGLang do while their profilers record.

A batch that is prefilled is no batch that is decoded, and a mark says which and of how many tokens. So marks are steps
only if all of them say the same, and what the device runs in each is as much.
"""

from __future__ import annotations

import numpy as np

from syncscope.patterns import compile_later
from syncscope.trace.quantiles import median
from syncscope.trace.rows import Rows, most_common

BATCH = compile_later(r"step\[[A-Z]\w*(?: [^\]]*)?\]|execute_(?:new_|(?:\d+_)?context_)\d")
"""How the marks begin: ``step[DECODE bs=8]`` (SGLang), ``execute_context_0(0)_generation_8(8)`` and, before,
``execute_new_0_cached_8`` (vllm/v1/worker/gpu_worker.py)."""

LEAST_TIMES = 3
"""Batches, at least."""

ALIKE = 0.05
"""Batches are alike if each has as many device rows as most, within this share."""

OUTSIDE = 0.05
"""Share of the device rows that may be launched before the first mark and after the last."""


def find_server_steps(annotations: Rows, device: Rows, runtime: Rows, pid: int | None) -> tuple[np.ndarray, int] | None:
    """When the steps begin, and the last ends, ns (n + 1,), and their thread; ``None`` where marks are no steps.

    A step lasts until the next begins, since the server puts the next batch together between two marks. The first
    begins with what is launched before its mark, the last ends when the device is done, unless that is a step away.
    """
    names = annotations.texts["name"]
    rows = annotations.take(names.are([BATCH.match(name) is not None for name in names.names]))
    rows = rows.take(rows["pid"] == pid)
    if len(rows) < LEAST_TIMES:
        return None
    rows = rows.take(rows["tid"] == most_common(rows["tid"]))
    one = len(set(rows.texts["name"].objects().tolist())) == 1
    if len(rows) < LEAST_TIMES or not one or (rows["ts"][1:] < rows["end"][:-1]).any():
        return None
    bounds = np.append(rows["ts"], rows["end"][-1])
    launched = _launches(device, runtime, pid)
    times = np.searchsorted(bounds, launched, side="right") - 1
    inside = (times >= 0) & (times < len(rows))
    many = np.bincount(times[inside], minlength=len(rows))
    alike = np.abs(many - median(many)) <= ALIKE * median(many)
    if not len(launched) or (~inside).mean() > OUTSIDE or not alike.all():
        return None
    period = int(median(np.diff(rows["ts"])))
    bounds[0] = min(bounds[0], max(launched.min(), bounds[0] - period))
    bounds[-1] = max(bounds[-1], min(device["end"].max(), bounds[-1] + period))
    return bounds, int(rows["tid"][0])


def _launches(device: Rows, runtime: Rows, pid: int | None) -> np.ndarray:
    """When each row of the devices was launched, of those whose launch is in the trace."""
    calls = runtime.take((runtime["pid"] == pid) & (runtime["correlation"] >= 0))
    known, first = np.unique(calls["correlation"], return_index=True)
    if not len(known):
        return np.empty(0, dtype=np.int64)
    slot = np.minimum(np.searchsorted(known, device["correlation"]), len(known) - 1)
    launched: np.ndarray = calls["ts"][first[slot[known[slot] == device["correlation"]]]]
    return launched
