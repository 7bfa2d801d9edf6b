"""The waits: runtime calls that return only when the device has done something."""

from __future__ import annotations

import numpy as np

from syncscope.timeline.calls import ORDERED, find_first, last_before
from syncscope.timeline.copy_ops import CLOCKS_APART, COPYING, CopyOps
from syncscope.timeline.intervals import Bools, Ints
from syncscope.timeline.nesting import Nesting
from syncscope.timeline.op_chains import COPIES
from syncscope.timeline.places import Places
from syncscope.timeline.tables import Activities, Calls, Copies, Objects, Ops, SyncRecords, Waits, objects
from syncscope.trace.names import SYNC_ROLES
from syncscope.trace.sets import different

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
"""``Waits.kind`` by the role of the call."""

ALL_STREAMS, NO_STREAM = -1, -2

AT_ONCE = 50_000
"""Nanoseconds between a blocking copy's call and the wait that follows it inside the same op, at most."""

RIGHT_BEHIND = 3_000
"""The same where the clock of the runtime's rows and that of the ops are so far apart that the two seem to be in
different ops. A program that waits by itself behind a copy takes longer: it has to leave the op first."""

HELD_NS = 100_000
"""Nanoseconds that a copy's call lasts at least when the host sits in it until memory is copied. One that only puts the
copy on a stream takes a tenth of that."""


def is_wait(kind: Objects) -> Bools:
    """Which waits (n,), by their ``kind``, wait for certain. Calls for memory may wait, and are left out."""
    return np.isin(kind, [KINDS[role] for role in SYNC_ROLES])


def find_waits(calls: Calls, ops: Ops, copy_ops: CopyOps) -> Waits:
    """The blocking calls with their ops, the profiler's own too; step, copy, pending work and place are unknown yet."""
    rows = np.flatnonzero(calls.do(KINDS))
    # A driver's wait inside a runtime's is the same wait.
    rows = rows[Nesting(calls.ts[rows], calls.end[rows], calls.tid[rows]).parent < 0]
    waiting = calls.take(rows)
    op = ops.nesting.innermost(waiting.tid, waiting.ts, waiting.end)
    copy_call = _completed_copies(calls, rows, op, ops, copy_ops)
    of_copy = np.where(copy_call >= 0, copy_ops.of(np.maximum(copy_call, 0)), -1)
    op = _inner(op, of_copy, ops, beside=copy_ops.clocks_disagree)
    known = np.isin(waiting.tid, list(ops.nesting.threads()))
    unknown = np.full(len(rows), -1, dtype=np.int64)
    return Waits(
        row=np.arange(len(rows), dtype=np.int64), ts=waiting.ts, end=waiting.end, begin=waiting.ts, call=rows,
        name=waiting.name, kind=objects([KINDS[role] for role in waiting.role]), tid=waiting.tid, step=unknown,
        correlation=waiting.correlation, op=op, ops=ops.chains(op), ops_known=known,
        copy_call=copy_call, copy=unknown, pending=unknown,
        place=np.zeros(len(rows), dtype=np.int64),
    )  # fmt: skip


def _inner(op: Ints, of_copy: Ints, ops: Ops, *, beside: bool) -> Ints:
    """The op of each wait (n,), which is also that of the copy that it completes: of the two the one that is further
    inside, or the copying one, if the wait may seem to be ``beside`` it since clocks disagree."""
    inner = op.copy()
    for row in np.flatnonzero((of_copy >= 0) & (of_copy != op)).tolist():
        of_wait, other = ops.chain(int(op[row])) if op[row] >= 0 else (), ops.chain(int(of_copy[row]))
        if len(other) > len(of_wait) or (beside and COPYING in other and COPYING not in of_wait):
            inner[row] = of_copy[row]
    return inner


def _completed_copies(calls: Calls, rows: Ints, op: Ints, ops: Ops, copy_ops: CopyOps) -> Ints:
    """The copy that each wait completes: its own, or for a stream's wait the copy just before it inside the same op."""
    role, ts, end, tid = calls.role, calls.ts, calls.end, calls.tid
    copying = np.flatnonzero(calls.do(["copy"]))
    # In whole microseconds a copy that takes less than one may begin when its wait does.
    brief_rows = copying[ts[copying] == end[copying]]
    brief = set(zip(tid[brief_rows].tolist(), ts[brief_rows].tolist(), strict=True))
    keys = zip(tid[rows].tolist(), ts[rows].tolist(), strict=True)
    with_brief = np.array([key in brief for key in keys], dtype=bool)
    before = last_before(ts[rows] + with_brief, tid[rows], copying, ts, tid)
    copy = np.maximum(before, 0)
    of_copy = copy_ops.of(copy)
    same_op = (op >= 0) & (of_copy == op)
    # Where no ops are known, the wait must come at once, with nothing but queries between it and the copy.
    ordered = np.flatnonzero(calls.do(ORDERED))
    right_behind = CLOCKS_APART if copy_ops.clocks_disagree else RIGHT_BEHIND
    near = np.where(np.isin(tid[rows], list(ops.nesting.threads())), right_behind, AT_ONCE)
    follows = with_brief | (last_before(ts[rows], tid[rows], ordered, ts, tid) == before)
    done = _leaves_op(end[copy], op, of_copy, ops) if copy_ops.clocks_disagree else end[copy]
    adjacent = follows & (ts[rows] - done <= near)
    completed = (role[rows] == "stream-sync") & (before >= 0) & (end[copy] <= ts[rows]) & (same_op | adjacent)
    # The first of two waits after one copy completes it.
    first = np.zeros(len(rows), dtype=bool)
    first[np.unique(np.where(completed, before, -1 - np.arange(len(rows))), return_index=True)[1]] = True
    return np.where(role[rows] == "copy-sync", rows, np.where(completed & first, before, -1))


def _leaves_op(end: Ints, op: Ints, of_copy: Ints, ops: Ops) -> Ints:
    """When the op of a copy ends that is followed by a wait inside an op that only moves tensors, since that waits
    nowhere but in the copying one; before others (n,) when the copy's call does, ``end``."""
    moves = np.array([bool(chain) and chain[-1] in COPIES for chain in ops.chains(op)], dtype=bool)
    return np.where(moves & (of_copy >= 0), np.maximum(end, ops.end[of_copy]), end)


def in_profiler(waits: Waits, calls: Calls, places: Places) -> Bools:
    """Which waits (n,) are the profiler's own.

    Those inside its Python frames. Where there are no frames, the last device sync of the trace if no op encloses it
    and its thread calls nothing more. In a recording also every device sync outside the steps that the collector did
    not record, since it records every one that the program asks for.
    """
    frames = places.stacks.nesting.innermost(waits.tid, waits.ts, waits.end)
    device, bare = waits.kind == "device", waits.op < 0
    last_call = {int(tid): int(calls.ts[calls.tid == tid].max()) for tid in different(waits.tid)}
    ends = waits.ts >= np.array([last_call[tid] for tid in waits.tid.tolist()], dtype=np.int64)
    last = device & (waits.ts == waits.ts[device].max(initial=0)) & bare & ends & (frames < 0)
    own: Bools = (device & places.stacks.in_profiler(frames)) | last
    if places.recording is None:
        return own
    recorded = np.array([place.source == "hook" for place in places.all], dtype=bool)[waits.place]
    unrecorded: Bools = (own | (device & bare & (waits.step < 0))) & ~recorded
    return unrecorded


def join_copies(waits: Waits, copies: Copies, calls: Calls) -> tuple[Waits, Copies]:
    """Waits and copies with the rows of each other. The blocked time of a wait that completes a pageable copy includes
    the copy's. Where the trace lacks the device's row of a copy, the length of its call tells."""
    copy = np.where(waits.copy_call >= 0, find_first(copies.launch, waits.copy_call), -1)
    pageable = np.append(copies.memory == "pageable", False)[copy]
    began, took = (np.append(column, 0)[waits.copy_call] for column in (calls.ts, calls.dur))
    held = pageable | ((waits.copy_call >= 0) & (copy < 0) & (took >= HELD_NS))
    begin = np.where(held, np.minimum(began, waits.ts), waits.ts)
    wait = np.full(len(copies), -1, dtype=np.int64)
    wait[copy[copy >= 0]] = waits.row[copy >= 0]
    joined = np.flatnonzero(wait >= 0)
    op, ops = copies.op.copy(), copies.ops.copy()
    op[joined], ops[joined] = waits.op[wait[joined]], waits.ops[wait[joined]]
    return waits.replace(copy=copy, begin=begin), copies.replace(wait=wait, op=op, ops=ops)


def waited_streams(waits: Waits, copies: Copies, records: SyncRecords) -> Ints:
    """The stream that each wait (n,) waits for: ``ALL_STREAMS``, or ``NO_STREAM`` where it is unknown."""
    records = records.take(records.stream >= 0)
    stream_of = dict(zip(records.correlation.tolist(), records.stream.tolist(), strict=True))
    recorded = [stream_of.get(correlation, NO_STREAM) for correlation in waits.correlation.tolist()]
    own = np.append(copies.stream, NO_STREAM)[waits.copy]
    one = np.where(own >= 0, own, recorded)
    of_one = np.isin(waits.kind, ["stream", "copy"])
    return np.where(waits.kind == "device", ALL_STREAMS, np.where(of_one, one, NO_STREAM))


def pending_work(waits: Waits, calls: Calls, activities: Activities, streams: Ints) -> Ints:
    """Nanoseconds of device work still ahead when each wait (n,) began to block, −1 where that is unknown. A wait for
    an unknown stream has nothing ahead where no stream has.

    ``streams`` (n,) are those of ``waited_streams``.
    """
    pending = np.zeros(len(waits), dtype=np.int64)
    if not len(activities):
        return pending - 1
    # What no recorded call launched counts as launched when it began.
    launched = np.where(activities.launch >= 0, np.append(calls.ts, 0)[activities.launch], activities.ts)
    order = np.argsort(launched, kind="stable")
    for wanted in different(streams):
        of_stream = np.flatnonzero(streams == wanted)
        rows = order if wanted in (ALL_STREAMS, NO_STREAM) else order[activities.stream[order] == wanted]
        if not len(rows):
            continue
        # What was launched before the wait is done when the latest of it ends.
        done = np.maximum.accumulate(activities.end[rows])
        begin = waits.begin[of_stream]
        slot = np.searchsorted(launched[rows], begin, side="right") - 1
        pending[of_stream] = np.where(slot >= 0, np.maximum(done[np.maximum(slot, 0)] - begin, 0), 0)
    return np.where((streams == NO_STREAM) & (pending > 0), -1, pending)
