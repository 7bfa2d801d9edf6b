"""The collectives of a trace: when each ran, what of it nothing hides, and what kept compute from running beside it."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pandas as pd

from syncscope.timeline.copies import compute_streams
from syncscope.timeline.intervals import Ints, Union
from syncscope.timeline.overlap import exposed_ns, is_compute
from syncscope.timeline.waits import OpIndex
from syncscope.trace.names import collective_of_call

COLLECTIVES = {
    "ts": "int64", "end": "int64", "dur": "int64",  # ns, on the device
    "row": "int64",  # row in Trace.device
    "launch": "int64",  # row in Timeline.calls, −1 not in the trace
    "launch_ts": "int64", "launch_end": "int64",  # ns; −1 not in the trace
    "tid": "int64",  # the launching thread, −1 not in the trace
    "name": "object",  # allreduce, reduce_scatter …
    "group": "object",  # the process group, "" unknown
    "bytes": "int64",  # the larger of what goes in and out, −1 unknown
    "device": "int64", "stream": "int64",  # −1 unknown
    "step": "int64",  # row in Timeline.steps of the launch (of the collective where that is missing), −1 outside
    "ops": "object",  # as in WAITS
    "exposed": "int64",  # ns with no compute kernel on its device
    "beside": "object",  # one of BESIDE: why nothing computes beside it
    "place": "int64",  # index in Timeline.places
}  # fmt: skip
"""One row a collective that the device ran, in order of ``ts``."""

SERVING_SEVERAL = ("send_recv", "collective")

SAME_STREAM, HELD, UNQUEUED = "same stream", "held back", "not queued"
BESIDE = (SAME_STREAM, HELD, UNQUEUED)
"""*same stream*: it is on a stream that computes. *held back*: what computes next was launched before it was over, and
waited for it. *not queued*: the host launched nothing more until it was over, or nothing more computes."""


def find_collectives(
    device: pd.DataFrame, launch: Ints, calls: pd.DataFrame, ops: OpIndex, compute: dict[int, Union]
) -> pd.DataFrame:
    """The columns of ``COLLECTIVES`` but ``step`` and ``place``. ``launch`` is a row of ``calls`` for each device row,
    −1 none; ``compute`` the union of compute kernels of each device."""
    rows = np.flatnonzero((device["collective"] != "").to_numpy(bool))
    table, launched = device.iloc[rows], launch[rows]
    ts, end, where = (table[c].to_numpy(np.int64) for c in ("ts", "end", "device"))
    launch_ts, launch_end, tid = (np.append(calls[c].to_numpy(np.int64), -1)[launched] for c in ("ts", "end", "tid"))
    op = np.where(launched >= 0, ops.nesting.innermost(tid, launch_ts, launch_end), -1)
    chains = {int(row): ops.chain(int(row)) for row in np.unique(op)}
    exposed = exposed_ns(ts, end, where, compute)
    found: pd.DataFrame = pd.DataFrame({
        "ts": ts, "end": end, "dur": end - ts, "row": rows,
        "launch": launched, "launch_ts": launch_ts, "launch_end": launch_end, "tid": tid,
        "name": table["collective"].astype(object).to_numpy(), "group": table["group"].astype(object).to_numpy(),
        "bytes": table["bytes"].to_numpy(np.int64), "device": where, "stream": table["stream"].to_numpy(np.int64),
        "ops": pd.Series([chains[int(row)] for row in op], dtype=object), "exposed": exposed,
        "beside": pd.Series(_beside(table, device, launch, calls), dtype=object),
    })  # fmt: skip
    return found


def named(names: pd.Series, ops: pd.Series, entries: list[str]) -> list[str]:
    """What each collective is: as its kernel says, but for kernels that serve several (NCCL's all-to-all is sends and
    receives), as the op or the recorded call that started it says."""
    found = []
    for name, chain, entry in zip(names, ops, entries, strict=True):
        told = [collective_of_call(call) for call in (entry, *chain)] if name in SERVING_SEVERAL else []
        found.append(next(filter(None, told), name))
    return found


def _beside(table: pd.DataFrame, device: pd.DataFrame, launch: Ints, calls: pd.DataFrame) -> npt.NDArray[np.object_]:
    found = np.full(len(table), UNQUEUED, dtype=object)
    kernels = device[is_compute(device) & (launch >= 0)]
    asked = calls["ts"].to_numpy(np.int64)[launch[kernels.index]]
    end, where = table["end"].to_numpy(np.int64), table["device"].to_numpy(np.int64)
    for number in np.unique(where):
        theirs = np.flatnonzero((kernels["device"] == number).to_numpy(bool))
        mine = np.flatnonzero(where == number)
        # The next to compute behind each collective: was it launched while the collective still ran?
        slot = np.searchsorted(kernels["ts"].to_numpy(np.int64)[theirs], end[mine], side="left")
        following = np.append(asked[theirs], end.max())[slot]
        found[mine[following < end[mine]]] = HELD
    found[compute_streams(table, device)] = SAME_STREAM
    return found


def trimmed(table: pd.DataFrame, steps: int) -> pd.DataFrame:
    """The collectives with those of the first step, of three or more, no longer than the longest of the later steps at
    the same place in the step."""
    if steps < 3 or not len(table):
        return table
    key = [table["name"], table.groupby(["step", "name"]).cumcount()]
    later = table[["dur", "exposed"]].where(table["step"] > 0).groupby(key).transform("max")
    first = (table["step"] == 0) & later["dur"].notna()
    found = table.copy()
    for column in ("dur", "exposed"):
        longer = first & (table[column] > later[column])
        found[column] = table[column].mask(longer, later[column]).astype("int64")
    return found
