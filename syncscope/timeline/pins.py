"""Host memory pinned while the program runs, and the copy that each pinning feeds."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pandas as pd

from syncscope.timeline.calls import COMMANDS
from syncscope.timeline.intervals import Ints
from syncscope.timeline.waits import OpIndex

PINS = {
    "ts": "int64", "end": "int64", "dur": "int64",  # ns; the host copies into pinned memory in between
    "tid": "int64",
    "step": "int64",  # row in Timeline.steps, −1 outside
    "op": "int64", "ops": "object",  # as in WAITS
    "copy": "int64",  # row in Timeline.copies of the copy to the device that follows at once, −1 none
    "place": "int64",  # index in Timeline.places
}  # fmt: skip
"""One row a pinning of a tensor, in order of ``ts``."""

ENTRY = "Tensor.pin_memory"
OPS = ("aten::pin_memory", "aten::_pin_memory")


def find_pins(ops: pd.DataFrame, index: OpIndex, recorded: pd.DataFrame) -> pd.DataFrame:
    """The pinnings seen as ops or as recorded calls (``ts``, ``end``, ``tid``, ``name``); the columns of ``PINS`` but
    ``step``, ``copy`` and ``place``."""
    rows = np.flatnonzero(ops["name"].isin(OPS).to_numpy(bool))
    # One pinning is an op inside an op; the outermost stands for both.
    parent = index.nesting.parent[rows]
    rows = rows[~np.isin(parent, rows)]
    table = ops.iloc[rows][["ts", "end", "tid"]].assign(op=rows)
    calls = recorded[(recorded["name"] == ENTRY).to_numpy(bool)]
    seen = [
        bool(((table["tid"] == tid) & (table["ts"] < end) & (table["end"] > ts)).any())
        for ts, end, tid in zip(calls["ts"], calls["end"], calls["tid"], strict=True)
    ]
    unseen = calls[~np.array(seen, dtype=bool)][["ts", "end", "tid"]].assign(op=-1)
    found: pd.DataFrame = pd.concat([table, unseen], ignore_index=True).astype("int64")
    found = found.sort_values("ts", kind="stable", ignore_index=True)
    found["dur"] = found["end"] - found["ts"]
    found["ops"] = pd.Series([index.chain(int(row)) for row in found["op"]], dtype=object)
    return found


def fed_copies(pins: pd.DataFrame, calls: pd.DataFrame, copies: pd.DataFrame) -> Ints:
    """For each pinning the row in ``copies`` that takes its memory to the device at once, −1 for none.

    The next thing its thread asks of the device is that copy; after several pinnings in a row, the copies that
    follow belong to them in order.
    """
    found = np.full(len(pins), -1, dtype=np.int64)
    to_device = (copies["direction"] == "HtoD").to_numpy(bool) & (copies["memory"] != "pageable").to_numpy(bool)
    launch = copies["launch"].to_numpy(np.int64)
    copy_of = {int(launch[row]): int(row) for row in np.flatnonzero(to_device & (launch >= 0))[::-1]}
    commands = np.flatnonzero(calls["role"].isin(COMMANDS).to_numpy(bool))
    ts, tid = calls["ts"].to_numpy(np.int64), calls["tid"].to_numpy(np.int64)
    for thread in np.unique(pins["tid"].to_numpy(np.int64)):
        mine = commands[tid[commands] == thread]
        rows = np.flatnonzero((pins["tid"] == thread).to_numpy(bool))
        nexts = np.searchsorted(ts[mine], pins["end"].to_numpy(np.int64)[rows], side="left")
        behind: Counter[int] = Counter()
        for row, first in zip(rows, nexts, strict=True):
            upto = mine[first : first + behind[int(first)] + 1]
            if len(upto) > behind[int(first)] and all(int(call) in copy_of for call in upto):
                found[row] = copy_of[int(upto[-1])]
            behind[int(first)] += 1
    return found
