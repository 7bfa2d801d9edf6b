"""Host memory pinned while the program runs, and the copy that each pinning feeds."""

from __future__ import annotations

from collections import Counter

import numpy as np

from syncscope.timeline.calls import COMMANDS
from syncscope.timeline.intervals import Ints
from syncscope.timeline.tables import Calls, Copies, Marks, Ops, Pins
from syncscope.trace.sets import different

ENTRY = "Tensor.pin_memory"
OPS = ("aten::pin_memory", "aten::_pin_memory")


def find_pins(ops: Ops, recorded: Marks) -> Pins:
    """The pinnings seen as ops or as recorded calls; step, copy and place are unknown yet."""
    rows = np.flatnonzero(ops.named(OPS.__contains__))
    # One pinning is an op inside an op; the outermost stands for both.
    rows = rows[~np.isin(ops.nesting.parent[rows], rows)]
    seen, calls = ops.take(rows), recorded.take(recorded.name == ENTRY)
    unseen = calls.take(
        [
            row
            for row, (ts, end, tid) in enumerate(zip(calls.ts, calls.end, calls.tid, strict=True))
            if not ((seen.tid == tid) & (seen.ts < end) & (seen.end > ts)).any()
        ]
    )
    order = np.argsort(np.append(seen.ts, unseen.ts), kind="stable")
    op = np.append(rows, np.full(len(unseen), -1, dtype=np.int64))[order]
    unknown = np.full(len(order), -1, dtype=np.int64)
    return Pins(
        row=np.arange(len(order), dtype=np.int64), ts=np.append(seen.ts, unseen.ts)[order],
        end=np.append(seen.end, unseen.end)[order], tid=np.append(seen.tid, unseen.tid)[order], step=unknown,
        op=op, ops=ops.chains(op), copy=unknown, place=np.zeros(len(order), dtype=np.int64),
    )  # fmt: skip


def fed_copies(pins: Pins, calls: Calls, copies: Copies) -> Ints:
    """For each pinning (n,) the row in ``copies`` that takes its memory to the device at once, −1 for none.

    The next command that its thread gives the device is that copy; after several pinnings in a row, the copies that
    follow belong to them in order.
    """
    fed = np.full(len(pins), -1, dtype=np.int64)
    to_device = (copies.direction == "HtoD") & (copies.memory != "pageable") & (copies.launch >= 0)
    copy_of = {int(copies.launch[row]): int(row) for row in np.flatnonzero(to_device)[::-1]}
    commands = np.flatnonzero(calls.do(COMMANDS)) if len(pins) else np.empty(0, dtype=np.int64)
    for thread in different(pins.tid):
        own = commands[calls.tid[commands] == thread]
        rows = np.flatnonzero(pins.tid == thread)
        following = np.searchsorted(calls.ts[own], pins.end[rows], side="left")
        before: Counter[int] = Counter()
        for row, first in zip(rows.tolist(), following.tolist(), strict=True):
            upto = own[first : first + before[first] + 1]
            if len(upto) > before[first] and all(int(call) in copy_of for call in upto):
                fed[row] = copy_of[int(upto[-1])]
            before[first] += 1
    return fed
