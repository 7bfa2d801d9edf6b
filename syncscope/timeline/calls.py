"""The runtime calls of the traced process, and what the devices ran with the call that launched it."""

from __future__ import annotations

from typing import Any

import numpy as np

from syncscope.timeline.intervals import Ints
from syncscope.timeline.tables import Activities, Calls
from syncscope.trace.model import Trace
from syncscope.trace.names import role
from syncscope.trace.sets import different

COMMANDS = frozenset({"launch", "graph-launch", "copy", "copy-sync", "fill"})
"""Roles of calls that give the device something to do."""

ORDERED = COMMANDS | {"stream-sync", "device-sync", "event-sync", "event-record", "stream-wait-event"}
"""Roles of calls whose order matters. The order of queries and attributes does not."""


def find_calls(trace: Trace) -> Calls:
    """Runtime and driver calls of the traced process, with the native number of their thread."""
    table = trace.rows["runtime"]
    if trace.pid is not None and (table["pid"] != trace.pid).any():
        table = table.take(table["pid"] == trace.pid)
    name = table.texts["name"]
    roles = np.array([role(text) for text in name.names], dtype=object)
    recorded = table["tid"]
    tid = recorded.copy()
    # Without CPU activity the profiler knows some threads by another number than the collector.
    for alias, native in (trace.recording.thread_aliases if trace.recording else {}).items():
        tid[recorded == int(alias)] = native
    return Calls(
        row=np.arange(len(table), dtype=np.int64), ts=table["ts"], end=table["end"], tid=tid,
        name=name.objects(), role=roles[name.codes], correlation=table["correlation"], copy_kind=table["copy_kind"],
    )  # fmt: skip


def find_activities(trace: Trace, calls: Calls) -> Activities:
    """What the devices ran, each with its launch."""
    table = trace.rows["device"]
    columns: dict[str, Any] = {name: column.objects() for name, column in table.texts.items()}
    columns |= {name: table[name] for name in ("ts", "end", "device", "stream", "correlation", "bytes")}
    launch = find_launches(table["correlation"], calls.correlation)
    return Activities(row=np.arange(len(table), dtype=np.int64), launch=launch, **columns)


def find_launches(correlation: Ints, calls: Ints) -> Ints:
    """For each device row (n,) by its correlation, the last of ``calls`` (their correlations, (m,)) that launched it,
    −1 where the trace does not hold it."""
    known = np.flatnonzero(calls >= 0)
    if not len(known):
        return np.full(len(correlation), -1, dtype=np.int64)
    known = known[np.argsort(calls[known], kind="stable")]
    keys = calls[known]
    slot = np.maximum(np.searchsorted(keys, correlation, side="right") - 1, 0)
    return np.where((correlation >= 0) & (keys[slot] == correlation), known[slot], -1)


def find_first(keys: Ints, wanted: Ints) -> Ints:
    """For each of ``wanted`` (n,) the position of the first of ``keys`` that equals it, −1 for none and for keys
    below 0."""
    known = np.flatnonzero(keys >= 0)
    if not len(known):
        return np.full(len(wanted), -1, dtype=np.int64)
    values, first = np.unique(keys[known], return_index=True)
    slot = np.minimum(np.searchsorted(values, wanted), len(values) - 1)
    return np.where(values[slot] == wanted, known[first[slot]], -1)


def last_before(times: Ints, tids: Ints, rows: Ints, row_times: Ints, row_tids: Ints) -> Ints:
    """For each time (n,) on its thread, the last of ``rows`` of that thread that began before it, −1 for none.

    ``row_times`` and ``row_tids`` are of the whole table that ``rows`` are rows of.
    """
    last = np.full(len(times), -1, dtype=np.int64)
    for tid in different(tids):
        wanted, candidates = np.flatnonzero(tids == tid), rows[row_tids[rows] == tid]
        if len(candidates):
            slot = np.searchsorted(row_times[candidates], times[wanted], side="left") - 1
            last[wanted] = np.where(slot >= 0, candidates[np.maximum(slot, 0)], -1)
    return last
