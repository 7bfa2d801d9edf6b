"""Raw columns → the tables that :mod:`syncscope.trace.model` documents, one at a time."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from syncscope.patterns import compile_later
from syncscope.trace import model
from syncscope.trace.decoding.columns import Columns, Strings, empty_columns
from syncscope.trace.decoding.events import NO_ARGS, Event
from syncscope.trace.decoding.numbers import Int, integer
from syncscope.trace.names import HIP_COPY_KINDS, collective_of, copy_of
from syncscope.trace.rows import Rows, Texts
from syncscope.trace.sets import different, either_of
from syncscope.trace.tables.python_names import python_name

_ANNOTATION_NAMES = ("ProfilerStep#", "Optimizer.", "enumerate(DataLoader)")
"""How annotations begin. Before torch 1.12 they were recorded as operators, so only the name tells them apart."""

_DEVICE_KINDS = ("kernel", "memcpy", "memset")
_DIRECTIONS = ("HtoD", "DtoH", "DtoD", "HtoH", "PtoP", "")
_MEMORY = ("pageable", "pinned", "")
_THREAD = compile_later(r"thread -?\d+ \((.*)\)")
"""Kineto's name of a thread: its id and the system's own name."""


class RawTables:
    """The raw columns of every table, added part by part in the file's order.

    Each table is made once: its raw columns are deleted meanwhile, to save memory.
    """

    def __init__(self, numbers: Strings) -> None:
        self._numbers = numbers
        self._parts: dict[str, list[Columns]] = {}
        self._number_by_external_id = False
        self.processes: dict[str, Int] = {}
        """What the file calls the process of each row of a device (n,), by table."""

    def add(self, table: str, columns: Columns) -> None:
        """Append rows to a table."""
        if len(columns["ts"]):
            self._parts.setdefault(table, []).append(columns)

    def has(self, *tables: str) -> bool:
        """Whether any of them has a row."""
        return any(self._parts.get(table) for table in tables)

    def rows(self, table: str) -> int:
        """How many rows a table has."""
        return sum(len(columns["ts"]) for columns in self._parts.get(table, []))

    def move_annotations(self) -> None:
        """Move the annotations among the operators to the table of annotations."""
        operators = self._parts.pop("ops", [])
        for columns in operators:
            moved = np.array([self._strings[n].startswith(_ANNOTATION_NAMES) for n in columns["name"].tolist()])
            self.add("ops", {name: column[~moved] for name, column in columns.items()})
            self.add("annotations", {name: columns[name][moved] for name in empty_columns("annotations")})

    def frames(self) -> Rows:
        """:data:`.model.FRAMES`. Takes every different name apart once."""
        columns = self._host("frames")
        names: Texts = columns["name"]
        parts = [python_name(name) for name in names.names]
        columns |= {
            "file": Texts.of(names.codes, [part.file for part in parts]),
            "line": np.array([part.line for part in parts], dtype=np.int64)[names.codes],
            "function": Texts.of(names.codes, [part.function for part in parts]),
        }
        return _table(columns, model.FRAMES)

    def ops(self) -> Rows:
        """:data:`.model.OPS`"""
        columns = self._host("ops")
        forward = columns["forward_tid"]
        columns["forward_tid"] = np.where(forward == 0, -1, forward)  # forward ops have thread 0, which is no thread
        return _table(columns, model.OPS)

    def runtime(self) -> Rows:
        """:data:`.model.RUNTIME`"""
        columns = self._host("runtime")
        self._number_by_external_id = _is_numbered_by_external_id(columns)
        if self._number_by_external_id:
            columns["correlation"] = columns["external_id"]
        columns["external_id"] = _linked(columns["external_id"], columns["correlation"])
        return _table(columns, model.RUNTIME)

    def device(self, launches: Rows) -> Rows:
        """:data:`.model.DEVICE`, after the runtime table: ``launches``, whose calls are right about HIP's copies."""
        raw = [self._take(kind) for kind in _DEVICE_KINDS]
        counts = [len(columns["ts"]) for columns in raw]
        is_copy = np.repeat([False, True, False], counts)
        columns: _Columns = {name: np.concatenate([part.pop(name) for part in raw]) for name in list(raw[0])}
        columns["name"] = names = interned(columns["name"], self._strings)
        if self._number_by_external_id and (columns["correlation"] < 0).all():
            columns["correlation"] = columns["external_id"]
        direction, memory = _copies(names, is_copy, columns.pop("copied"), self._strings)
        _trust_hip_calls(launches, columns["correlation"], is_copy, direction, columns["bytes"])
        columns |= {
            "kind": Texts.of(np.repeat([0, 1, 2], counts), _DEVICE_KINDS),
            "external_id": _linked(columns["external_id"], columns["correlation"]),
            "direction": Texts.of(direction, _DIRECTIONS),
            "memory": Texts.of(memory, _MEMORY),
            "collective": self._collectives(names, counts[0], columns["collective"]),
            "group": interned(columns["group"], self._strings),
            "graph": np.where(columns["graph"] == 0, -1, columns["graph"]),  # 0 is no graph
        }
        return self._of_devices("device", columns, model.DEVICE)

    def sync(self) -> Rows:
        """:data:`.model.SYNC`"""
        return self._of_devices("sync", self._host("sync"), model.SYNC)

    def annotations(self) -> Rows:
        """:data:`.model.ANNOTATIONS`"""
        return _table(self._host("annotations"), model.ANNOTATIONS)

    def device_annotations(self) -> Rows:
        """:data:`.model.DEVICE_ANNOTATIONS`"""
        return self._of_devices("device_annotations", self._host("device_annotations"), model.DEVICE_ANNOTATIONS)

    def _of_devices(self, name: str, columns: _Columns, table: model.Table) -> Rows:
        processes = columns.pop("process")
        columns["end"] = columns["ts"] + columns["dur"]
        order = _order(columns)
        self.processes[name] = processes[order]
        return _sorted(columns, table, order)

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

    def _collectives(self, names: Texts, kernels: int, arguments: Int) -> Texts:
        """The collective that each kernel runs. The row's own argument counts more than its name."""
        found = Strings()
        by_name = found.column([collective_of(name) for name in names.names])
        codes = by_name[names.codes]
        codes[kernels:] = found[""]
        for row in np.flatnonzero(arguments[:kernels] != self._numbers.get("", -1)).tolist():
            name = names.names[int(names.codes[row])]
            codes[row] = found[collective_of(name, self._strings[int(arguments[row])])]
        return Texts.of(codes, list(found))


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


def _table(columns: _Columns, table: model.Table) -> Rows:
    """The table's columns, sorted by start, the longest first among equals."""
    columns["end"] = columns["ts"] + columns["dur"]
    return _sorted(columns, table, _order(columns))


def _sorted(columns: _Columns, table: model.Table, order: Int) -> Rows:
    """The table's columns in this order."""
    rows = Rows({}, {})
    for name in table.columns:
        column = columns.pop(name)
        if isinstance(column, Texts):
            rows.texts[name] = column.take(order)
        else:
            rows.numbers[name] = column[order]
    return rows


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
    keys = [_ranks(columns[name], rows) for name in (*_COUNTED, *others) if name in columns]
    order[tied[alike]] = rows[np.lexsort((*reversed(keys), -dur[rows], ts[rows]))]
    return order


def _neighbours(same: NDArray[np.bool_]) -> Int:
    """The indices of rows that are the same as the one before or behind, of which ``same`` (n − 1,) tells."""
    equal = np.flatnonzero(same)
    return either_of(equal, equal + 1)


def _ranks(column: Int | Texts, rows: Int) -> Int:
    """Numbers in the order of these rows' values. Of texts, those that they have, not the places of their names."""
    if not isinstance(column, Texts):
        return column[rows]
    used, place = np.unique(column.codes[rows], return_inverse=True)
    texts = np.array(column.names, dtype=object)[used]
    return np.argsort(np.argsort(texts, kind="stable"), kind="stable")[place]


def _linked(external: Int, correlation: Int) -> Int:
    """External ids that link to an op. torch ≤ 2.5 repeats the correlation where there is none; that becomes −1."""
    return np.where(external == correlation, -1, external)


def _is_numbered_by_external_id(calls: _Columns) -> bool:
    """Whether runtime calls have no correlations, and an external id each that no other has: old traces of ROCm join
    calls and what they launched by that. An external id that links to an op is that of several calls."""
    external = calls["external_id"]
    if not len(external) or (calls["correlation"] >= 0).any() or (external < 0).any():
        return False
    return len(different(external)) == len(external)


def _copies(
    names: Texts, is_copy: NDArray[np.bool_], copied: Int, strings: Sequence[str]
) -> tuple[NDArray[np.integer], NDArray[np.integer]]:
    """Of every row the numbers of its direction and its host memory, from its name or else from its ``… kind``
    argument, of which ``copied`` is the number."""
    kinds = [copy_of(name) for name in names.names]
    none = _DIRECTIONS.index("")
    of_name = np.array([_DIRECTIONS.index(kind.direction) for kind in kinds], dtype=np.int64)
    direction = np.where(is_copy, of_name[names.codes], none)
    of_name = np.array([_MEMORY.index(kind.memory) for kind in kinds], dtype=np.int64)
    memory = np.where(is_copy, of_name[names.codes], _MEMORY.index(""))
    for row in np.flatnonzero(is_copy & (direction == none)).tolist():
        if text := strings[int(copied[row])]:
            kind = copy_of(text)
            direction[row], memory[row] = _DIRECTIONS.index(kind.direction), _MEMORY.index(kind.memory)
    return direction, memory


def _trust_hip_calls(
    calls: Rows, correlation: Int, is_copy: NDArray[np.bool_], direction: NDArray[np.integer], size: Int
) -> None:
    """Take ``direction`` and ``size`` of copies from the launching calls, in place: ROCm's device rows may be wrong."""
    known = np.flatnonzero((calls["copy_kind"] >= 0) & (calls["correlation"] >= 0))
    if not len(known):
        return
    keys, first = np.unique(calls["correlation"][known], return_index=True)
    slot = np.minimum(np.searchsorted(keys, correlation), len(keys) - 1)
    copies = np.flatnonzero(is_copy & (keys[slot] == correlation))
    launched_by = known[first[slot[copies]]]
    kinds, sizes = calls["copy_kind"][launched_by], calls["bytes"][launched_by]
    for kind, name in HIP_COPY_KINDS.items():
        direction[copies[kinds == kind]] = _DIRECTIONS.index(name)
    size[copies] = np.where(size[copies] < 0, sizes, size[copies])


def interned(numbers: Int, strings: Sequence[str]) -> Texts:
    """A column whose row ``i`` is ``strings[numbers[i]]``, its names in order of first appearance."""
    first = np.full(len(strings), len(numbers), dtype=np.int64)
    first[numbers[::-1]] = np.arange(len(numbers) - 1, -1, -1)
    used = np.flatnonzero(first < len(numbers))
    used = used[np.argsort(first[used])]
    place = first  # no longer needed
    place[used] = np.arange(len(used))
    return Texts.of(place[numbers], [strings[number] for number in used.tolist()])
