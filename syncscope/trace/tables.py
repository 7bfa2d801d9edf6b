"""Events → the frames of :mod:`.model`, a table at a time, each column in one pass over its rows."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import compress
from typing import Any

import numpy as np
import pandas as pd

from syncscope.trace import model
from syncscope.trace.columns import Int, category, integer, integers, interned, is_time, nanoseconds
from syncscope.trace.events import NO_ARGS, Args, Event
from syncscope.trace.frames import python_name
from syncscope.trace.names import HIP_COPY_KINDS, collective_of, copy_of, item_size

# What each category of event is, in lower case; before torch 1.12 they were capitalised and called otherwise.
_TABLES = {
    "cpu_op": "ops",
    "operator": "ops",
    "cuda_runtime": "runtime",
    "cuda_driver": "runtime",
    "runtime": "runtime",
    "xpu_runtime": "runtime",
    "xpu_driver": "runtime",
    "kernel": "kernel",
    "gpu_memcpy": "memcpy",
    "memcpy": "memcpy",
    "gpu_memset": "memset",
    "memset": "memset",
    "cuda_sync": "sync",
    "xpu_sync": "sync",
    "python_function": "frames",
    "user_annotation": "annotations",
}

_ANNOTATION_NAMES = ("ProfilerStep#", "Optimizer.", "enumerate(DataLoader)")
"""Before torch 1.12 annotations were operators, and only their names tell."""

MOST_ELEMENTS = 1 << 58
"""Elements of a message from which on their bytes would overflow."""

_THREAD = re.compile(r"thread -?\d+ \((.*)\)")
"""Kineto's name of a thread: its id and the system's own name."""


@dataclass
class Rows:
    """The events of every table, in the file's order, and what else of them is used."""

    ops: list[Event] = field(default_factory=list)
    runtime: list[Event] = field(default_factory=list)
    kernel: list[Event] = field(default_factory=list)
    memcpy: list[Event] = field(default_factory=list)
    memset: list[Event] = field(default_factory=list)
    sync: list[Event] = field(default_factory=list)
    frames: list[Event] = field(default_factory=list)
    annotations: list[Event] = field(default_factory=list)
    metadata: list[Event] = field(default_factory=list)
    other_categories: set[str] = field(default_factory=set)
    """Categories of complete events that no table takes."""
    warnings: list[str] = field(default_factory=list)


def split(events: Iterable[Event]) -> Rows:
    """Complete events by table. ``B`` and ``E`` events become complete ones; events without a time are dropped."""
    rows = Rows()
    lists: dict[str | None, list[Event]] = {}
    halves: list[Event] = []
    for event in events:
        if event.ph == "X":
            bucket = lists.get(event.cat)
            if bucket is None:
                bucket = lists[event.cat] = _bucket(rows, event.cat)
            bucket.append(event)
        elif event.ph == "M":
            rows.metadata.append(event)
        elif event.ph in ("B", "E"):
            halves.append(event)
    for event in _paired(halves, rows.warnings):
        _bucket(rows, event.cat).append(event)
    if "Operator" in lists:
        named = [event.name.startswith(_ANNOTATION_NAMES) for event in rows.ops]
        rows.annotations += compress(rows.ops, named)
        rows.ops = [event for event, is_annotation in zip(rows.ops, named, strict=True) if not is_annotation]
    _drop_untimed(rows)
    return rows


def _bucket(rows: Rows, category_name: str | None) -> list[Event]:
    table = _TABLES.get((category_name or "").lower())
    if table is None:
        rows.other_categories.add(category_name or "")
        return []
    bucket: list[Event] = getattr(rows, table)
    return bucket


def _paired(halves: list[Event], warnings: list[str]) -> list[Event]:
    """Complete events from begin and end events: an end closes the last one open on its process and thread."""
    complete: list[Event] = []
    open_events: dict[tuple[object, object], list[Event]] = {}
    strays = 0
    for half in sorted(halves, key=lambda event: event.ts):
        stack = open_events.setdefault((str(half.pid), str(half.tid)), [])
        if half.ph == "B":
            stack.append(half)
            complete.append(half)
        elif stack:
            begin = stack.pop()
            begin.dur = half.ts - begin.ts
            begin.args = begin.args or half.args
        else:
            strays += 1
    unclosed = sum(map(len, open_events.values()))
    if strays or unclosed:
        warnings.append(f"{unclosed} begin events have no end (taken as instants) and {strays} end events no begin")
    return complete


def _drop_untimed(rows: Rows) -> None:
    dropped = 0
    for table in set(_TABLES.values()):
        events: list[Event] = getattr(rows, table)
        timed = [is_time(event.ts) and (event.dur is None or is_time(event.dur)) for event in events]
        if not all(timed):
            dropped += len(timed) - sum(timed)
            setattr(rows, table, list(compress(events, timed)))
    if dropped:
        rows.warnings.append(f"{dropped:,} event{'s' if dropped != 1 else ''} skipped: no time or an impossible one")


# --------------------------------------------------------------------------------------------------- tables


def operators(rows: list[Event]) -> pd.DataFrame:
    """:data:`.model.OPS`"""
    args = _args(rows)
    forward = integers([a.forward_tid for a in args])
    columns = _host(rows) | {
        "external_id": _external(args),
        "sequence": integers([a.sequence for a in args]),
        "forward_tid": np.where(forward == 0, -1, forward),  # forward ops have thread 0, which is nobody's
    }
    return _table(columns, model.OPS)


def calls(rows: list[Event]) -> pd.DataFrame:
    """:data:`.model.RUNTIME`"""
    args = _args(rows)
    correlation = integers([a.correlation for a in args])
    columns = _host(rows) | {
        "correlation": correlation,
        "external_id": _linked(_external(args), correlation),
        "bytes": integers([a.bytes if a.size is None else a.size for a in args]),
        "copy_kind": integers([a.kind for a in args]),
    }
    return _table(columns, model.RUNTIME)


def device_rows(rows: Rows, launches: pd.DataFrame) -> pd.DataFrame:
    """:data:`.model.DEVICE`; ``launches`` is the runtime table, which knows better about HIP's copies."""
    events = rows.kernel + rows.memcpy + rows.memset
    counts = [len(rows.kernel), len(rows.memcpy), len(rows.memset)]
    is_copy = np.repeat([False, True, False], counts)
    args = _args(events)
    correlation = integers([a.correlation for a in args])
    names = interned([e.name for e in events])
    graph = integers([a.graph for a in args])
    direction, memory = _copies(names, is_copy, args)
    size = _first(integers([a.bytes for a in args]), _message_bytes(args))
    _trust_hip_calls(launches, correlation, is_copy, direction, size)
    columns = _times(events) | {
        "name": names,
        "kind": category(np.repeat([0, 1, 2], counts), ["kernel", "memcpy", "memset"]),
        "device": _first(integers([a.device for a in args]), integers([e.pid for e in events])),
        "stream": _first(integers([a.stream for a in args]), integers([_stream(e.tid) for e in events])),
        "correlation": correlation,
        "external_id": _linked(_external(args), correlation),
        "bytes": size,
        "direction": pd.Categorical(direction, categories=["HtoD", "DtoH", "DtoD", "HtoH", "PtoP", ""]),
        "memory": pd.Categorical(memory, categories=["pageable", "pinned", ""]),
        "collective": _collectives(names, counts[0], args),
        "group": interned(["" if a.group is None else str(a.group) for a in args]),
        "graph": np.where(graph == 0, -1, graph),  # 0 is no graph
    }
    return _table(columns, model.DEVICE)


def sync_records(rows: list[Event]) -> pd.DataFrame:
    """:data:`.model.SYNC`"""
    args = _args(rows)
    columns = _times(rows) | {
        "name": interned([e.name for e in rows]),
        "device": integers([a.device for a in args]),
        "stream": integers([a.stream for a in args]),
        "correlation": integers([a.correlation for a in args]),
        "wait_on_stream": integers([a.wait_on_stream for a in args]),
        "wait_on_event_correlation": integers([a.wait_on_event for a in args]),
    }
    return _table(columns, model.SYNC)


def python_frames(rows: list[Event]) -> pd.DataFrame:
    """:data:`.model.FRAMES`; a name is taken apart once, however many rows have it."""
    args = _args(rows)
    host = _host(rows)
    names: pd.Categorical = host["name"]
    codes = names.codes.astype(np.intp)
    parts = [python_name(name) for name in names.categories]
    lines = np.array([part.line for part in parts], dtype=np.int64)
    columns = host | {
        "id": integers([a.python_id for a in args]),
        "parent": integers([a.python_parent for a in args]),
        "file": category(codes, [part.file for part in parts]),
        "line": lines[codes] if len(parts) else codes.astype(np.int64),
        "function": category(codes, [part.function for part in parts]),
    }
    return _table(columns, model.FRAMES)


def annotation_rows(rows: list[Event]) -> pd.DataFrame:
    """:data:`.model.ANNOTATIONS`"""
    return _table(_host(rows), model.ANNOTATIONS)


def thread_names(metadata: list[Event], pid: int | None) -> dict[int, str]:
    """Names of the threads of process ``pid``, by thread id."""
    names = {}
    for event in metadata:
        name = (event.args or NO_ARGS).name
        if event.name == "thread_name" and isinstance(name, str) and pid is not None and integer(event.pid) == pid:
            inner = _THREAD.fullmatch(name)
            names[integer(event.tid)] = inner[1] if inner else name
    return names


# ---------------------------------------------------------------------------------------------------- parts

_Columns = dict[str, Any]


def _table(columns: _Columns, contract: dict[str, str]) -> pd.DataFrame:
    """A frame with the contract's columns, sorted by start, the longest first among equals."""
    order = np.lexsort((-columns["dur"], columns["ts"]))
    frame: pd.DataFrame = pd.DataFrame({name: columns[name][order] for name in contract}, copy=False)
    return frame


def _times(rows: Sequence[Event]) -> _Columns:
    start = nanoseconds([e.ts for e in rows])
    length = np.maximum(nanoseconds([e.dur or 0.0 for e in rows]), 0)
    return {"ts": start, "dur": length, "end": start + length}


def _host(rows: Sequence[Event]) -> _Columns:
    return _times(rows) | {
        "pid": integers([e.pid for e in rows]),
        "tid": integers([e.tid for e in rows]),
        "name": interned([e.name for e in rows]),
    }


def _args(rows: Sequence[Event]) -> list[Args]:
    return [e.args or NO_ARGS for e in rows]


def _external(args: Sequence[Args]) -> Int:
    return integers([a.external_id_old if a.external_id is None else a.external_id for a in args])


def _linked(external: Int, correlation: Int) -> Int:
    """External ids that link to an op: torch ≤ 2.5 repeats the correlation where there is none."""
    return np.where(external == correlation, -1, external)


def _first(preferred: Int, other: Int) -> Int:
    return np.where(preferred < 0, other, preferred)


def _stream(tid: object) -> object:
    """The lane ``stream 7`` of old traces is stream 7, and the lane itself in later ones."""
    return tid.removeprefix("stream ").split(" ")[0] if isinstance(tid, str) else tid


def _copies(
    names: pd.Categorical, is_copy: np.ndarray[Any, Any], args: list[Args]
) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """Direction and host memory of every row, from its name, else from its ``… kind`` arguments."""
    kinds = [copy_of(name) for name in names.categories] or [copy_of("")]
    codes = names.codes if len(names) else names.codes.astype(np.intp)
    direction = np.where(is_copy, np.array([kind.direction for kind in kinds], dtype=object)[codes], "")
    memory = np.where(is_copy, np.array([kind.memory for kind in kinds], dtype=object)[codes], "")
    for row in np.flatnonzero(is_copy & (direction == "")):
        arguments = args[row]
        if isinstance(arguments.copy_kind, str):
            source, target = arguments.source_kind, arguments.target_kind
            direction[row], memory[row] = copy_of(f"Memcpy {arguments.copy_kind} ({source} -> {target})")
    return direction, memory


def _trust_hip_calls(
    calls: pd.DataFrame, correlation: Int, is_copy: np.ndarray[Any, Any], direction: np.ndarray[Any, Any], size: Int
) -> None:
    """Fill in place what ROCm's device rows have wrong or lack: the direction and the bytes of the launching call."""
    known = calls[(calls["copy_kind"] >= 0) & (calls["correlation"] >= 0)].drop_duplicates("correlation")
    if known.empty:
        return
    found = pd.Index(known["correlation"]).get_indexer(pd.Index(correlation))
    copies = np.flatnonzero(is_copy & (found >= 0))
    launched_by = found[copies]
    kinds, sizes = known["copy_kind"].to_numpy()[launched_by], known["bytes"].to_numpy()[launched_by]
    for kind, name in HIP_COPY_KINDS.items():
        direction[copies[kinds == kind]] = name
    size[copies] = _first(size[copies], sizes)


def _message_bytes(args: Sequence[Args]) -> Int:
    """Bytes of the messages of collectives, −1 where a row does not say."""
    elements = np.maximum(integers([a.elements_in for a in args]), integers([a.elements_out for a in args]))
    each = np.array([item_size(str(a.dtype)) if a.dtype else -1 for a in args], dtype=np.int64)
    sane = (elements >= 0) & (elements < MOST_ELEMENTS) & (each > 0)
    return np.where(sane, np.where(sane, elements, 0) * each, -1)


def _collectives(names: pd.Categorical, kernels: int, args: list[Args]) -> pd.Categorical:
    """The collective that each kernel runs; the row's own argument counts more than its name."""
    by_name = np.array([collective_of(name) for name in names.categories] or [""], dtype=object)
    result = np.where(np.arange(len(names)) < kernels, by_name[names.codes.astype(np.intp)], "")
    for row in range(kernels):
        argument = args[row].collective
        if argument and isinstance(argument, str):
            result[row] = collective_of(str(names[row]), argument)
    return interned(list(result))
