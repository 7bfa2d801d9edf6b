"""Rows of the timeline's picture, before they are merged: host threads, streams and idle devices as one table."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import pandas as pd

from syncscope.timeline.calls import COMMANDS
from syncscope.timeline.intervals import Bools, Ints, Union
from syncscope.timeline.timeline import Timeline
from syncscope.timeline.waits import is_wait

ROWS = {
    "ts": "int64", "end": "int64",  # ns since the trace's base
    "where": "int64",  # HOST, IDLE or STREAM
    "tid": "int64", "device": "int64", "stream": "int64",  # −1 where it does not apply
    "kind": "int64",  # index in KINDS
    "name": "object",
    "bytes": "int64",  # −1 none
    "memory": "object",  # pageable | pinned | ""
    "place": "int64",  # index in Timeline.places, −1 for what is no wait and no copy
    "op": "object",  # for a wait or copy the innermost op that a user knows, else the call's name; "" none
    "link": "int64",  # row of this table that it led to or waited for (idle: the wait behind it), −1 none
}  # fmt: skip
"""One row an event of the picture."""

HOST, IDLE, STREAM = range(3)
"""Where a row is drawn: on a host thread, in the strip of a device's idle time, on a stream."""

KINDS = (
    "annotation", "op", "call", "launch", "wait", "idle",
    "memset", "compute", "DtoD", "copy", "collective", "HtoD", "DtoH", "exposed",
)  # fmt: skip
"""What a row is, in the order of drawing: later ones lie over earlier ones. ``launch`` is a runtime call that hands
work to the device, ``call`` any other one; ``copy`` is a copy between other places or of unknown direction. No event is
``exposed``, the part of copies and collectives with no compute beside it, and ``idle``, a bubble named by its cause."""

KIND = {kind: number for number, kind in enumerate(KINDS)}

MARKER = "ProfilerStep#"
SLACK = 20_000
"""Nanoseconds by which device work may seem to end after the wait for it."""


def picture_rows(timeline: Timeline) -> pd.DataFrame:
    """Everything a picture can show (``ROWS``): calls, device rows, outermost ops and annotations, bubbles, and what is
    exposed, in this order."""
    trace = timeline.trace
    calls, device = _calls(timeline), _device(timeline)
    # Calls come first, then device rows: a row of the device is a row of this table behind them.
    target = np.full(len(calls), -1, dtype=np.int64)
    launched = np.flatnonzero(timeline.launch >= 0)[::-1]
    target[timeline.launch[launched]] = launched
    waits = timeline.waits
    target[waits["call"].to_numpy(np.int64)] = waited_for(timeline)
    calls["link"] = np.where(target >= 0, target + len(calls), -1)
    ops = timeline.ops
    marker = trace.ops["name"].astype(str).str.startswith(MARKER).to_numpy(bool)
    top = trace.ops[_outermost(ops.nesting.parent, marker)]
    mine = trace.annotations
    notes = mine[~mine["name"].astype(str).str.startswith(MARKER).to_numpy(bool)]
    hosts = _host(top, "op"), _host(_widest(notes), "annotation")
    parts = [calls, device, *hosts, _bubbles(timeline), _exposed(device)]
    found: pd.DataFrame = pd.concat([part[list(ROWS)] for part in parts], ignore_index=True)
    return found


def _blank(n: int, where: int) -> pd.DataFrame:
    defaults = {"tid": -1, "device": -1, "stream": -1, "bytes": -1, "memory": "", "place": -1, "op": "", "link": -1}
    found: pd.DataFrame = pd.DataFrame({"where": np.full(n, where, dtype=np.int64), **defaults})
    return found


def _host(table: pd.DataFrame, kind: str) -> pd.DataFrame:
    table = table.reset_index(drop=True)
    columns = {"ts": table["ts"], "end": table["end"], "tid": table["tid"], "name": table["name"].astype(object)}
    found: pd.DataFrame = _blank(len(table), HOST).assign(kind=KIND[kind], **columns)
    return found


def _calls(timeline: Timeline) -> pd.DataFrame:
    calls, waits, copies = timeline.calls, timeline.waits, timeline.copies
    rows = _host(calls, "call")
    kind = np.where(calls["role"].isin(COMMANDS).to_numpy(bool), KIND["launch"], KIND["call"])
    place, op = rows["place"].to_numpy(copy=True), np.full(len(rows), "", dtype=object)
    size, memory = rows["bytes"].to_numpy(copy=True), op.copy()
    launched = copies[copies["launch"].to_numpy(np.int64) >= 0]
    at = launched["launch"].to_numpy(np.int64)
    place[at], op[at] = launched["place"], _known_ops(launched["ops"], rows["name"].to_numpy()[at])
    size[at], memory[at] = launched["bytes"], launched["memory"]
    # A copy from or to pageable memory blocks inside its call: that is a wait too.
    kind[at[(launched["memory"] == "pageable").to_numpy(bool)]] = KIND["wait"]
    at = waits["call"].to_numpy(np.int64)
    place[at], op[at] = waits["place"], _known_ops(waits["ops"], waits["name"])
    kind[at[is_wait(waits["kind"])]] = KIND["wait"]
    found: pd.DataFrame = rows.assign(kind=kind, place=place, op=op, bytes=size, memory=memory)
    return found


def _device(timeline: Timeline) -> pd.DataFrame:
    table, copies = timeline.trace.device, timeline.copies
    shown = np.where((table["kind"] == "memset").to_numpy(bool), KIND["memset"], KIND["compute"])
    shown[(table["collective"] != "").to_numpy(bool)] = KIND["collective"]
    rows = _blank(len(table), STREAM).assign(
        ts=table["ts"], end=table["end"], device=table["device"], stream=table["stream"],
        name=table["name"].astype(object), bytes=table["bytes"], memory=table["memory"].astype(object),
    )  # fmt: skip
    at = copies["row"].to_numpy(np.int64)
    shown[at] = [KIND.get(direction, KIND["copy"]) for direction in copies["direction"]]
    place, op = rows["place"].to_numpy(copy=True), np.full(len(rows), "", dtype=object)
    call = np.append(timeline.calls["name"].astype(object).to_numpy(), "")[copies["launch"].to_numpy(np.int64)]
    place[at], op[at] = copies["place"], _known_ops(copies["ops"], call)
    found: pd.DataFrame = rows.assign(kind=shown, place=place, op=op)
    return found


def _known_ops(chains: Iterable[tuple[str, ...]], calls: Iterable[str]) -> list[str]:
    """What each was, as findings name it: ``aten::item``, not the private ``aten::_local_scalar_dense`` inside."""
    found = []
    for chain, call in zip(chains, calls, strict=True):
        public = [op for op in chain if not op.split("::")[-1].startswith("_")]
        found.append(str((public or chain or (call,))[-1]))
    return found


def waited_for(timeline: Timeline) -> Ints:
    """For each wait the row of ``Trace.device`` it waited for, −1 none: its copy, else the last to end during the
    wait of what was launched before it."""
    waits, copies, device = timeline.waits, timeline.copies, timeline.trace.device
    found: Ints = np.append(copies["row"].to_numpy(np.int64), -1)[waits["copy"].to_numpy(np.int64)]
    end = device["end"].to_numpy(np.int64)
    # What was launched before the trace began, or by a call it does not hold, counts as launched before the wait.
    launch = timeline.launch
    asked = np.where(launch >= 0, np.append(timeline.calls["ts"].to_numpy(np.int64), 0)[launch], end.min(initial=0))
    order = np.argsort(end, kind="stable")
    without = np.flatnonzero((found < 0) & is_wait(waits["kind"]))
    spans = waits[["begin", "end"]].to_numpy(np.int64)
    for wait, last in zip(without, np.searchsorted(end[order], spans[without, 1] + SLACK, side="right"), strict=True):
        begin = spans[wait, 0]
        for row in order[:last][::-1]:
            if end[row] < begin or asked[row] < begin:
                found[wait] = row if end[row] >= begin else -1
                break
    return found


def _outermost(parent: Ints, marker: Bools) -> Bools:
    """Rows with nothing around them but the profiler's step markers."""
    inside = np.append(~marker, False)[parent]
    found: Bools = ~marker & ~inside
    return found


def _widest(notes: pd.DataFrame) -> pd.DataFrame:
    """Annotations that no other one of their thread holds."""
    if not len(notes):
        return notes
    reach = notes.groupby("tid")["end"].cummax()
    before = reach.groupby(notes["tid"]).shift(fill_value=notes["ts"].min() - 1)
    found: pd.DataFrame = notes[(notes["end"] > before).to_numpy(bool)]
    return found


def _bubbles(timeline: Timeline) -> pd.DataFrame:
    """When the device is idle. Calls are the first rows of the picture, so a call's number is its row's."""
    idle, device = timeline.idle, timeline.device
    call = np.append(timeline.waits["call"].to_numpy(np.int64), -1)[idle["emptied_by"].to_numpy(np.int64)]
    found: pd.DataFrame = _blank(len(idle), IDLE).assign(
        ts=idle["ts"].to_numpy(np.int64), end=idle["end"].to_numpy(np.int64), kind=KIND["idle"],
        device=-1 if device is None else device, name=idle["cause"].to_numpy(object), link=call,
    )  # fmt: skip
    return found


def _exposed(device: pd.DataFrame) -> pd.DataFrame:
    """The parts of copies and collectives with no compute beside them; as in ``Overlap``, copies inside the device do
    not count."""
    moving = device[device["kind"].isin([KIND[kind] for kind in ("HtoD", "DtoH", "copy", "collective")])]
    parts = [_blank(0, STREAM).assign(ts=0, end=0, kind=0, name="")]
    computing = device[(device["kind"] == KIND["compute"]).to_numpy(bool)]
    for number, stream in moving[["device", "stream"]].drop_duplicates().to_numpy(np.int64).tolist():
        mine = moving[((moving["device"] == number) & (moving["stream"] == stream)).to_numpy(bool)]
        ts, end = _union(mine).without(_union(computing[(computing["device"] == number).to_numpy(bool)]))
        rows = _blank(len(ts), STREAM).assign(ts=ts, end=end, device=number, stream=stream)
        parts.append(rows.assign(kind=KIND["exposed"], name="exposed"))
    found: pd.DataFrame = pd.concat(parts, ignore_index=True)
    return found


def _union(rows: pd.DataFrame) -> Union:
    return Union(rows["ts"].to_numpy(np.int64), rows["end"].to_numpy(np.int64))
