"""Copies between host and device, joined with the call that launched them."""

from __future__ import annotations

import numpy as np
import pandas as pd

from syncscope.timeline.intervals import Bools, Ints, Union
from syncscope.timeline.overlap import exposed_ns, is_compute
from syncscope.timeline.waits import OpIndex
from syncscope.trace.names import HIP_COPY_KINDS

COPIES = {
    "ts": "int64", "end": "int64", "dur": "int64",  # ns, on the device
    "row": "int64",  # row in Trace.device
    "launch": "int64",  # row in Timeline.calls, −1 not in the trace
    "launch_ts": "int64", "launch_end": "int64", "launch_dur": "int64",  # ns; −1 not in the trace
    "tid": "int64",  # the launching thread, −1 not in the trace
    "step": "int64",  # row in Timeline.steps of the launch (of the copy where the launch is missing), −1 outside
    "bytes": "int64",  # −1 unknown
    "direction": "object",  # HtoD | DtoH | DtoD | HtoH | PtoP | "" unknown
    "memory": "object",  # the host side: pageable | pinned | "" unknown or none
    "device": "int64", "stream": "int64",  # −1 unknown
    "op": "int64", "ops": "object",  # as in WAITS
    "wait": "int64",  # row in Timeline.waits of the wait that completes it, −1 none
    "exposed": "int64",  # ns of the copy with no compute kernel on its device
    "with_compute": "bool",  # its stream runs a tenth or more of the device's compute
    "place": "int64",  # index in Timeline.places
}  # fmt: skip
"""One row a copy that the device made, in order of ``ts``. Only host ↔ device copies have a ``place`` of their own."""

COMPUTE_SHARE = 0.1
"""A stream is one that computes from this share of its device's kernel time on: a cast on a copy stream is none."""


def find_copies(
    device: pd.DataFrame, launch: Ints, calls: pd.DataFrame, ops: OpIndex, compute: dict[int, Union]
) -> pd.DataFrame:
    """The columns of ``COPIES`` but ``step``, ``wait`` and ``place``. ``launch`` is a row of ``calls`` for each device
    row, −1 none; ``compute`` the union of compute kernels of each device."""
    rows = np.flatnonzero((device["kind"] == "memcpy").to_numpy(bool))
    table, launch = device.iloc[rows], launch[rows]
    ts, end, where = (table[c].to_numpy(np.int64) for c in ("ts", "end", "device"))

    def of_launch(column: str) -> Ints:
        values = np.append(calls[column].to_numpy(np.int64), -1)
        return values[launch]

    launch_ts, launch_end, tid = of_launch("ts"), of_launch("end"), of_launch("tid")
    op = np.where(launch >= 0, ops.nesting.innermost(tid, launch_ts, launch_end), -1)
    chains = {int(row): ops.chain(int(row)) for row in np.unique(op)}
    exposed = exposed_ns(ts, end, where, compute)
    found: pd.DataFrame = pd.DataFrame({
        "ts": ts, "end": end, "dur": end - ts, "row": rows,
        "launch": launch, "launch_ts": launch_ts, "launch_end": launch_end,
        "launch_dur": np.where(launch >= 0, launch_end - launch_ts, -1), "tid": tid,
        "bytes": table["bytes"].to_numpy(np.int64),
        "direction": pd.Series(_directions(table, of_launch("copy_kind")), dtype=object),
        "memory": pd.Series(table["memory"].astype(object).to_numpy(), dtype=object),
        "device": where, "stream": table["stream"].to_numpy(np.int64),
        "op": op, "ops": pd.Series([chains[int(row)] for row in op], dtype=object),
        "exposed": exposed, "with_compute": compute_streams(table, device),
    })  # fmt: skip
    return found


def blocks_alone(copies: pd.DataFrame) -> Bools:
    """Copies from or to pageable memory that block inside their own call, with no wait behind it."""
    found: Bools = ((copies["memory"] == "pageable") & (copies["launch"] >= 0) & (copies["wait"] < 0)).to_numpy(bool)
    return found


def _directions(table: pd.DataFrame, copy_kind: Ints) -> list[str]:
    # ROCm labels some copies wrongly on the device row; the launching call knows.
    stated = table["direction"].astype(object).to_numpy()
    return [HIP_COPY_KINDS.get(int(kind), name) for kind, name in zip(copy_kind, stated, strict=True)]


def compute_streams(table: pd.DataFrame, device: pd.DataFrame) -> list[bool]:
    """Which rows of ``table`` are on a stream that computes."""
    compute = device[is_compute(device)]
    time = compute.groupby(["device", "stream"])["dur"].sum()
    share = time / time.groupby("device").transform("sum").clip(lower=1)
    streams = set(share.index[(share >= COMPUTE_SHARE).to_numpy(bool)])
    return [pair in streams for pair in zip(table["device"].tolist(), table["stream"].tolist(), strict=True)]
