"""Raw columns → the frames that :mod:`syncscope.trace.model` documents, one table at a time."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from syncscope.trace import model
from syncscope.trace.decoding.columns import Columns, Int, Strings, empty_columns, integer
from syncscope.trace.decoding.events import NO_ARGS, Event
from syncscope.trace.names import HIP_COPY_KINDS, collective_of, copy_of
from syncscope.trace.tables.python_names import python_name

_ANNOTATION_NAMES = ("ProfilerStep#", "Optimizer.", "enumerate(DataLoader)")
"""How annotations begin. Before torch 1.12 they were recorded as operators, so only the name tells them apart."""

_DEVICE_KINDS = ("kernel", "memcpy", "memset")
_THREAD = re.compile(r"thread -?\d+ \((.*)\)")
"""Kineto's name of a thread: its id and the system's own name."""


class RawTables:
    """The raw columns of every table, added part by part in the file's order.

    Each table is made once: its raw columns are deleted meanwhile, to save memory.
    """

    def __init__(self, numbers: Strings) -> None:
        self._numbers = numbers
        self._parts: dict[str, list[Columns]] = {}

    def add(self, table: str, columns: Columns) -> None:
        """Append rows to a table."""
        if len(columns["ts"]):
            self._parts.setdefault(table, []).append(columns)

    def has(self, *tables: str) -> bool:
        """Whether any of them has a row."""
        return any(self._parts.get(table) for table in tables)

    def move_annotations(self) -> None:
        """Move the annotations among the operators to the table of annotations."""
        operators = self._parts.pop("ops", [])
        for columns in operators:
            moved = np.array([self._strings[n].startswith(_ANNOTATION_NAMES) for n in columns["name"].tolist()])
            self.add("ops", {name: column[~moved] for name, column in columns.items()})
            self.add("annotations", {name: columns[name][moved] for name in empty_columns("annotations")})

    def frames(self) -> pd.DataFrame:
        """:data:`.model.FRAMES`. Takes every different name apart once."""
        columns = self._host("frames")
        names: pd.Categorical = columns["name"]
        codes = names.codes.astype(np.intp)
        parts = [python_name(name) for name in names.categories]
        lines = np.array([part.line for part in parts], dtype=np.int64)
        columns |= {
            "file": category(codes, [part.file for part in parts]),
            "line": lines[codes] if len(parts) else codes.astype(np.int64),
            "function": category(codes, [part.function for part in parts]),
        }
        return _frame(columns, model.FRAMES)

    def ops(self) -> pd.DataFrame:
        """:data:`.model.OPS`"""
        columns = self._host("ops")
        forward = columns["forward_tid"]
        columns["forward_tid"] = np.where(forward == 0, -1, forward)  # forward ops have thread 0, which is no thread
        return _frame(columns, model.OPS)

    def runtime(self) -> pd.DataFrame:
        """:data:`.model.RUNTIME`"""
        columns = self._host("runtime")
        columns["external_id"] = _linked(columns["external_id"], columns["correlation"])
        return _frame(columns, model.RUNTIME)

    def device(self, launches: pd.DataFrame) -> pd.DataFrame:
        """:data:`.model.DEVICE`. ``launches`` is the runtime table, whose calls are right about HIP's copies."""
        raw = [self._take(kind) for kind in _DEVICE_KINDS]
        counts = [len(columns["ts"]) for columns in raw]
        is_copy = np.repeat([False, True, False], counts)
        columns: _Columns = {name: np.concatenate([part.pop(name) for part in raw]) for name in list(raw[0])}
        columns["name"] = names = interned(columns["name"], self._strings)
        direction, memory = _copies(names, is_copy, [self._strings[n] for n in columns.pop("copied").tolist()])
        _trust_hip_calls(launches, columns["correlation"], is_copy, direction, columns["bytes"])
        columns |= {
            "kind": category(np.repeat([0, 1, 2], counts), _DEVICE_KINDS),
            "external_id": _linked(columns["external_id"], columns["correlation"]),
            "direction": pd.Categorical(direction, categories=["HtoD", "DtoH", "DtoD", "HtoH", "PtoP", ""]),
            "memory": pd.Categorical(memory, categories=["pageable", "pinned", ""]),
            "collective": self._collectives(names, counts[0], columns["collective"]),
            "group": interned(columns["group"], self._strings),
            "graph": np.where(columns["graph"] == 0, -1, columns["graph"]),  # 0 is no graph
        }
        return _frame(columns, model.DEVICE)

    def sync(self) -> pd.DataFrame:
        """:data:`.model.SYNC`"""
        return _frame(self._host("sync"), model.SYNC)

    def annotations(self) -> pd.DataFrame:
        """:data:`.model.ANNOTATIONS`"""
        return _frame(self._host("annotations"), model.ANNOTATIONS)

    def device_annotations(self) -> pd.DataFrame:
        """:data:`.model.DEVICE_ANNOTATIONS`"""
        return _frame(self._host("device_annotations"), model.DEVICE_ANNOTATIONS)

    @cached_property
    def _strings(self) -> list[str]:
        """The strings by number, once all are known."""
        return list(self._numbers)

    def _host(self, table: str) -> _Columns:
        columns: _Columns = dict(self._take(table))
        columns["name"] = interned(columns["name"], self._strings)
        return columns

    def _take(self, table: str) -> Columns:
        """The columns of a table; deletes its parts one by one."""
        parts = self._parts.pop(table, None) or [empty_columns(table)]
        return {
            name: np.concatenate([part.pop(name) for part in parts], dtype=np.int64, casting="safe")
            for name in list(parts[0])
        }

    def _collectives(self, names: pd.Categorical, kernels: int, arguments: Int) -> pd.Categorical:
        """The collective that each kernel runs. The row's own argument counts more than its name."""
        by_name = np.array([collective_of(name) for name in names.categories] or [""], dtype=object)
        result = np.where(np.arange(len(names)) < kernels, by_name[names.codes.astype(np.intp)], "")
        named = np.flatnonzero(arguments[:kernels] != self._numbers.get("", -1))
        for row in named:
            result[row] = collective_of(str(names[row]), self._strings[arguments[row]])
        codes, collectives = pd.factorize(result)
        return category(codes, list(collectives))


def thread_names(metadata: Iterable[Event], pid: int | None) -> dict[int, str]:
    """Names of the threads of process ``pid``, by thread id.

    A thread begins with the name of the one that started it, and may be named again later: of several names it is
    called by the one that the fewest threads have.
    """
    names: dict[int, set[str]] = {}
    for event in metadata:
        name = (event.args or NO_ARGS).name
        if event.name == "thread_name" and isinstance(name, str) and pid is not None and integer(event.pid) == pid:
            inner = _THREAD.fullmatch(name)
            names.setdefault(integer(event.tid), set()).add(inner[1] if inner else name)
    bearers = Counter(name for own in names.values() for name in own)
    return {tid: min(own, key=lambda name: (bearers[name], name)) for tid, own in names.items()}


# ---------------------------------------------------------------------------------------------------- columns

_Columns = dict[str, Any]


def _frame(columns: _Columns, table: model.Table) -> pd.DataFrame:
    """A frame with the table's columns, sorted by start, the longest first among equals."""
    columns["end"] = columns["ts"] + columns["dur"]
    order = _order(columns)
    frame: pd.DataFrame = pd.DataFrame({name: columns.pop(name)[order] for name in table.columns}, copy=False)
    return frame


_COUNTED = ("tid", "device", "stream", "id", "correlation", "external_id")
"""Of rows with the same times: first a thread's or stream's own, in the order of the numbers that count them up."""


def _order(columns: _Columns) -> Int:
    """The rows by start, the longest first among equals, and then by what the rows hold, never by their place in the
    file: a file's events may come in any order. Quick for rows that are mostly in order already, as a profiler's are.
    """
    ts, dur = columns["ts"], columns["dur"]
    order = np.argsort(ts, kind="stable")
    tied = _neighbours(np.diff(ts[order]) == 0)
    rows = order[tied]
    order[tied] = rows = rows[np.lexsort((-dur[rows], ts[rows]))]
    alike = _neighbours((np.diff(ts[rows]) == 0) & (np.diff(dur[rows]) == 0))
    if not len(alike):
        return order
    rows = rows[alike]
    others = [name for name in columns if name not in (*_COUNTED, "ts", "dur", "end", "row")]
    keys = [_ranks(columns[name][rows]) for name in (*_COUNTED, *others) if name in columns]
    order[tied[alike]] = rows[np.lexsort((*reversed(keys), -dur[rows], ts[rows]))]
    return order


def _neighbours(same: NDArray[np.bool_]) -> Int:
    """The indices of rows that are the same as the one before or behind, of which ``same`` (n − 1,) tells."""
    equal = np.flatnonzero(same)
    return np.union1d(equal, equal + 1)


def _ranks(column: Int | pd.Categorical) -> Int:
    """Numbers in the order of the column's values. Of texts, those that it has, not the places of their categories."""
    if not isinstance(column, pd.Categorical):
        return column
    used, place = np.unique(column.codes, return_inverse=True)
    texts = column.categories.to_numpy(dtype=object)[used]
    return np.argsort(np.argsort(texts, kind="stable"), kind="stable")[place]


def _linked(external: Int, correlation: Int) -> Int:
    """External ids that link to an op. torch ≤ 2.5 repeats the correlation where there is none; that becomes −1."""
    return np.where(external == correlation, -1, external)


def _copies(
    names: pd.Categorical, is_copy: np.ndarray[Any, Any], copied: Sequence[str]
) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """Direction and host memory of every row, from its name or else from its ``… kind`` arguments."""
    kinds = [copy_of(name) for name in names.categories] or [copy_of("")]
    codes = names.codes if len(names) else names.codes.astype(np.intp)
    direction = np.where(is_copy, np.array([kind.direction for kind in kinds], dtype=object)[codes], "")
    memory = np.where(is_copy, np.array([kind.memory for kind in kinds], dtype=object)[codes], "")
    for row in np.flatnonzero(is_copy & (direction == "")).tolist():
        if copied[row]:
            direction[row], memory[row] = copy_of(copied[row])
    return direction, memory


def _trust_hip_calls(
    calls: pd.DataFrame, correlation: Int, is_copy: np.ndarray[Any, Any], direction: np.ndarray[Any, Any], size: Int
) -> None:
    """Take ``direction`` and ``size`` of copies from the launching calls, in place: ROCm's device rows may be wrong."""
    known = calls[(calls["copy_kind"] >= 0) & (calls["correlation"] >= 0)].drop_duplicates("correlation")
    if known.empty:
        return
    calls_of = pd.Index(known["correlation"]).get_indexer(pd.Index(correlation))
    copies = np.flatnonzero(is_copy & (calls_of >= 0))
    launched_by = calls_of[copies]
    kinds, sizes = known["copy_kind"].to_numpy()[launched_by], known["bytes"].to_numpy()[launched_by]
    for kind, name in HIP_COPY_KINDS.items():
        direction[copies[kinds == kind]] = name
    size[copies] = np.where(size[copies] < 0, sizes, size[copies])


def category(codes: NDArray[np.integer], names: Sequence[str]) -> pd.Categorical:
    """A categorical column whose row ``i`` is ``names[codes[i]]``. ``names`` may repeat; the categories do not."""
    merged, unique = pd.factorize(np.array(names, dtype=object))
    taken = merged[codes] if len(names) else codes
    return pd.Categorical.from_codes(taken, categories=pd.Index(list(unique), dtype="str"))


def interned(numbers: Int, strings: Sequence[str]) -> pd.Categorical:
    """A categorical column whose row ``i`` is ``strings[numbers[i]]``, its categories in order of first appearance."""
    codes, used = pd.factorize(numbers)
    names = [strings[number] for number in used.tolist()]
    return pd.Categorical.from_codes(codes, categories=pd.Index(names, dtype="str"))
