"""The waits: runtime calls that return only when the device has done something."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd

from syncscope.timeline.calls import ORDERED, last_before
from syncscope.timeline.intervals import Bools, Ints
from syncscope.timeline.nesting import Nesting
from syncscope.trace.names import SYNC_ROLES

KINDS = {
    "stream-sync": "stream",
    "device-sync": "device",
    "event-sync": "event",
    "copy-sync": "copy",
    "device-alloc": "alloc",
    "host-alloc": "alloc",
    "device-free": "free",
    "host-free": "free",
}

WAITS = {
    "ts": "int64", "end": "int64", "dur": "int64",  # ns; the call itself
    "begin": "int64",  # ns; when the host began to be blocked: where it completes a pageable copy, that call's begin
    "stall": "int64",  # ns blocked: end − begin
    "call": "int64",  # row in Timeline.calls
    "name": "object",  # the runtime call
    "kind": "object",  # stream | device | event | copy (a copy that blocks by itself) | alloc | free (of memory)
    "tid": "int64",
    "step": "int64",  # row in Timeline.steps, −1 outside
    "correlation": "int64",  # −1 none
    "op": "int64",  # innermost enclosing row of Trace.ops, −1 none
    "ops": "object",  # tuple of the enclosing ops' names, outermost first; () none or unknown
    "ops_known": "bool",  # whether () means none: the trace holds ops of this thread, or they are known otherwise
    "copy_call": "int64",  # row in Timeline.calls of the copy that it completes, −1 none
    "copy": "int64",  # row in Timeline.copies of that copy, −1 none or not in the trace
    "pending": "int64",  # ns of device work still ahead when it began; 0 the queue was empty; −1 unknown
    "place": "int64",  # index in Timeline.places
}  # fmt: skip
"""One row a wait of the traced process, the profiler's own left out, in order of ``ts``.

A copy put on a stream from or to pageable memory blocks inside its call too. It is no row here, since the wait that
follows it in a blocking copy is, and takes over its blocked time. A copy with no wait behind it keeps its own:
``Timeline.copies.launch_dur``.
"""

ALL_STREAMS, NO_STREAM = -1, -2

AT_ONCE = 50_000
"""Nanoseconds between a blocking copy's call and the wait that follows it inside the same op, at most."""


@dataclass(frozen=True)
class OpIndex:
    """The ops of the traced process with their nesting."""

    names: list[str]
    nesting: Nesting

    def chain(self, row: int) -> tuple[str, ...]:
        """Names of the op and what encloses it, outermost first, without the profiler's step markers."""
        found = [self.names[i] for i in self.nesting.chain(row)]
        return tuple(name for name in reversed(found) if not name.startswith("ProfilerStep#"))


def find_waits(calls: pd.DataFrame, ops: OpIndex) -> pd.DataFrame:
    """The blocking calls with their ops: the columns of ``WAITS`` up to ``copy_call``, ``step`` still missing."""
    role = calls["role"].to_numpy(object)
    rows = np.flatnonzero(np.isin(role, list(KINDS)))
    table = calls.iloc[rows]
    ts, end, tid = (table[c].to_numpy(np.int64) for c in ("ts", "end", "tid"))
    # A driver's wait inside a runtime's is the same wait.
    nested = Nesting(pd.DataFrame({"ts": ts, "end": end, "tid": tid})).parent >= 0
    rows, ts, end, tid = rows[~nested], ts[~nested], end[~nested], tid[~nested]
    op = ops.nesting.innermost(tid, ts, end)
    chains = {int(row): ops.chain(int(row)) for row in np.unique(op)}
    known = np.isin(tid, list(ops.nesting.threads()))
    found: pd.DataFrame = pd.DataFrame({
        "ts": ts, "end": end, "dur": end - ts, "call": rows,
        "name": calls["name"].astype(object).to_numpy()[rows],
        "kind": [KINDS[role[row]] for row in rows],
        "tid": tid, "correlation": calls["correlation"].to_numpy(np.int64)[rows], "op": op,
        "ops": pd.Series([chains[int(row)] for row in op], dtype=object),
        "ops_known": known, "copy_call": _completed_copies(calls, rows, op, known, ops),
    })  # fmt: skip
    return found


def _completed_copies(calls: pd.DataFrame, rows: Ints, op: Ints, known: Bools, ops: OpIndex) -> Ints:
    """The copy each wait completes: its own, or for a stream's wait the copy just before it inside the same op."""
    role = calls["role"].to_numpy(object)
    ts, end, tid = (calls[c].to_numpy(np.int64) for c in ("ts", "end", "tid"))
    copies = np.flatnonzero(role == "copy")
    before = last_before(ts[rows], tid[rows], copies, ts, tid)
    place = np.maximum(before, 0)
    same_op = (op >= 0) & (ops.nesting.innermost(tid[place], ts[place], end[place]) == op)
    # Where no ops are known, the wait must come at once, with nothing but questions between it and the copy.
    ordered = np.flatnonzero(np.isin(role, list(ORDERED)))
    adjacent = ~known & (last_before(ts[rows], tid[rows], ordered, ts, tid) == before)
    adjacent &= ts[rows] - end[place] <= AT_ONCE
    completed = (role[rows] == "stream-sync") & (before >= 0) & (end[place] <= ts[rows]) & (same_op | adjacent)
    # Of two waits after one copy, the first completes it.
    completed &= ~pd.Series(np.where(completed, before, -1 - np.arange(len(rows)))).duplicated().to_numpy()
    return np.where(role[rows] == "copy-sync", rows, np.where(completed, before, -1))


def profilers_own(waits: pd.DataFrame, calls: pd.DataFrame, in_profiler: Bools, framed: Bools) -> Bools:
    """Which waits are the profiler's: those inside its Python frames; where there are no frames, the last device sync
    of the trace if no op encloses it and its thread calls nothing more. ``framed`` says which waits have a frame."""
    device = (waits["kind"] == "device").to_numpy(bool)
    ts = waits["ts"].to_numpy(np.int64)
    ends = ts >= waits["tid"].map(calls.groupby("tid")["ts"].max()).to_numpy(np.int64)
    last = device & (ts == ts[device].max(initial=0)) & (waits["op"] < 0).to_numpy(bool) & ends & ~framed
    found: Bools = (device & in_profiler) | last
    return found


def pending_work(waits: pd.DataFrame, device: pd.DataFrame, launched: Ints, streams: Ints) -> Ints:
    """Nanoseconds of device work still ahead when each wait began to block, −1 where that cannot be told.

    ``device`` are the device rows, ``launched`` (n,) when each was launched (its own begin where unknown),
    ``streams`` the stream each wait waits for: ``ALL_STREAMS``, or ``NO_STREAM`` where it is unknown.
    """
    found = np.zeros(len(waits), dtype=np.int64)
    if not len(device):
        return found - 1
    ts = waits["begin"].to_numpy(np.int64)
    stream, end = device["stream"].to_numpy(np.int64), device["end"].to_numpy(np.int64)
    order = np.argsort(launched, kind="stable")
    for wanted in np.unique(streams):
        mine = np.flatnonzero(streams == wanted)
        rows = order if wanted == ALL_STREAMS else order[stream[order] == wanted]
        if not len(rows):
            continue
        # What was launched before the wait is done when the latest of it ends.
        done = np.maximum.accumulate(end[rows])
        slot = np.searchsorted(launched[rows], ts[mine], side="right") - 1
        found[mine] = np.where(slot >= 0, np.maximum(done[np.maximum(slot, 0)] - ts[mine], 0), 0)
    return np.where(streams == NO_STREAM, -1, found)


def is_wait(kind: pd.Series) -> Bools:
    """Waits proper: allocation calls, which only may wait, left out."""
    found: Bools = kind.isin([KINDS[role] for role in SYNC_ROLES]).to_numpy(bool)
    return found
