"""The runtime calls of the traced process with their role, and the join from device rows back to their launch."""

from __future__ import annotations

import numpy as np
import pandas as pd

from syncscope.timeline.intervals import Ints
from syncscope.trace.model import Trace
from syncscope.trace.names import role

COMMANDS = frozenset({"launch", "graph-launch", "copy", "copy-sync", "fill"})
"""Roles of calls that give the device something to do."""

ORDERED = COMMANDS | {"stream-sync", "device-sync", "event-sync", "event-record", "stream-wait-event"}
"""Roles of calls whose place among the others matters; queries and attributes do not."""


def runtime_calls(trace: Trace) -> pd.DataFrame:
    """Runtime and driver calls of the traced process, in order of time.

    The columns of ``model.RUNTIME``, ``tid`` always the native one, and ``role`` (category): what the call does
    (``names.Role``), ``""`` for one the table of names does not hold.
    """
    table = trace.runtime
    if trace.pid is not None and len(table) and (table["pid"] != trace.pid).any():
        table = table[table["pid"] == trace.pid].reset_index(drop=True)
    roles = table["name"].astype("category").cat
    meaning = np.array([role(str(name)) for name in roles.categories] or [""], dtype=object)
    aliases = trace.recording.thread_aliases if trace.recording else {}
    if aliases:
        # Without CPU activity the profiler knows some threads by another number than the collector.
        native = {int(alias): tid for alias, tid in aliases.items()}
        table = table.assign(tid=table["tid"].map(lambda tid: native.get(tid, tid)).astype("int64"))
    found: pd.DataFrame = table.assign(role=pd.Categorical(meaning[roles.codes.to_numpy()] if len(table) else []))
    return found


def launches(device: pd.DataFrame, calls: pd.DataFrame) -> Ints:
    """For each device row (n,), the row of ``calls`` that launched it, −1 where the trace does not hold it."""
    known = np.flatnonzero(calls["correlation"].to_numpy(np.int64) >= 0)
    keys = calls["correlation"].to_numpy(np.int64)[known]
    order = np.argsort(keys, kind="stable")
    keys, known = keys[order], known[order]
    wanted = device["correlation"].to_numpy(np.int64)
    slot = np.searchsorted(keys, wanted, side="right") - 1
    if not len(keys):
        return np.full(len(wanted), -1, dtype=np.int64)
    hit = (slot >= 0) & (wanted >= 0) & (keys[np.maximum(slot, 0)] == wanted)
    return np.where(hit, known[np.maximum(slot, 0)], -1)


def last_before(times: Ints, tids: Ints, rows: Ints, row_times: Ints, row_tids: Ints) -> Ints:
    """For each (time, thread), the last of ``rows`` of that thread that began before the time, −1 for none."""
    found = np.full(len(times), -1, dtype=np.int64)
    for tid in np.unique(tids):
        mine, theirs = np.flatnonzero(tids == tid), rows[row_tids[rows] == tid]
        if len(theirs):
            slot = np.searchsorted(row_times[theirs], times[mine], side="left") - 1
            found[mine] = np.where(slot >= 0, theirs[np.maximum(slot, 0)], -1)
    return found
