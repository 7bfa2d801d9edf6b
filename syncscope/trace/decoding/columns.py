"""Events → the raw columns of each table, one piece of the file at a time.

Raw columns are int64 numbers; a name is its number in :class:`Strings`. :mod:`syncscope.trace.tables` makes tables
of them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import compress, groupby
from typing import Any

import msgspec
import numpy as np
from msgspec import field
from numpy.typing import NDArray

from syncscope.trace.decoding.events import NO_ARGS, TABLE_OF, TABLES, Args, Event
from syncscope.trace.decoding.numbers import Int, integers, nanoseconds, packed
from syncscope.trace.names import item_size
from syncscope.trace.source import Loss

LONGEST_US = 4e15
"""Times and lengths beyond this (the year 2096 in µs) are impossible; they would overflow int64 nanoseconds, or the
length between two of them would."""

_NO_ROWS = np.empty(0, dtype=np.int64)

MOST_ELEMENTS = 1 << 58
"""The size in bytes of a message with more elements would overflow."""

Columns = dict[str, NDArray[np.integer]]
"""The columns of a table by name: integers of any width."""

TEXTS = ("name", "copied", "collective", "group")
"""The columns that hold numbers of strings."""


class Strings(dict[str, int]):
    """Numbers the strings in order of first appearance, and equal ones alike."""

    def __missing__(self, text: str) -> int:
        number = self[text] = len(self)
        return number

    def column(self, values: Sequence[str]) -> Int:
        """The number of each string."""
        return packed("q", list(map(self.__getitem__, values)))

    def texts(self, values: Sequence[object]) -> Int:
        """The number of each value's text. ``None``, which most rows have, counts as ``""``."""
        if values.count(None) == len(values):
            return np.full(len(values), self[""], dtype=np.int64)
        return self.column(["" if value is None else str(value) for value in values])


class Part(msgspec.Struct):
    """The rows of one piece of a file, in the file's order. ``row`` counts from the beginning of the piece."""

    events: int = 0
    """How many events the piece holds, read or not."""
    tables: dict[str, Columns] = field(default_factory=dict)
    metadata: list[Event] = field(default_factory=list)
    halves: list[tuple[int, Event]] = field(default_factory=list)
    """``B`` and ``E`` events, each with its row. They can be paired only when all have been read."""
    other_categories: set[str] = field(default_factory=set)
    """Categories of complete events that no table takes."""
    capitalised: bool = False
    """Whether operators are called ``Operator``, as before torch 1.12."""
    untimed: int = 0
    """How many events were left out because their time is missing or impossible."""

    def add(self, table: str, rows: Int, events: list[Event], strings: Strings) -> None:
        """Add the columns of a table, made from the events of its ``rows``."""
        self.tables[table] = columns = _columns(table, rows, events, strings)
        self.untimed += len(rows) - len(columns["row"])

    def renumber(self, numbers: NDArray[np.int32]) -> None:
        """Give the string with number ``i`` the number ``numbers[i]``."""
        for columns in self.tables.values():
            columns |= {name: numbers[columns[name]] for name in TEXTS if name in columns}


class _Rows(dict[str | None, list[int]]):
    """The rows of each category of complete events; categories of one table share a list."""

    def __init__(self, part: Part) -> None:
        self._part = part
        self._tables: dict[str, list[int]] = {}

    def __missing__(self, category: str | None) -> list[int]:
        table = TABLE_OF.get((category or "").lower())
        if table is None:
            self._part.other_categories.add(category or "")
        self[category] = rows = [] if table is None else self._tables.setdefault(table, [])
        return rows

    def fill(self, events: Sequence[Event] | Mapping[int, Event], strings: Strings) -> None:
        """Make the columns of every table from the ``events`` of its rows."""
        for table, rows in self._tables.items():
            self._part.add(table, packed("q", rows), [events[row] for row in rows], strings)


class _Kinds(dict[type, int]):
    """Numbers the classes of events, of which there is one for each category: ``_ANY`` for events of any kind, 0 for
    arrows, else the place of their table behind 0."""

    def __missing__(self, kind: Any) -> int:
        number = _ANY
        if kind is not Event:
            number = 0 if kind.ph == "" else 1 + TABLES.index(TABLE_OF[kind.cat])
        self[kind] = number
        return number


_ANY = 255
_KINDS = _Kinds()


def split(events: Sequence[Event], strings: Strings) -> Part:
    """Split a piece: complete events become columns by table, metadata and halves stay events."""
    kinds = np.frombuffer(bytes(map(_KINDS.__getitem__, map(type, events))), dtype=np.uint8)
    there = np.flatnonzero(np.bincount(kinds)[1:]).tolist()
    if _ANY - 1 in there:
        return _split_any(events, strings)
    part = Part(len(events))
    for number in there:
        rows = np.flatnonzero(kinds == number + 1)
        part.add(TABLES[number], rows, [events[row] for row in rows.tolist()], strings)
    return part


def _split_any(events: Sequence[Event], strings: Strings) -> Part:
    """Split a piece that holds more than complete events and arrows."""
    part = Part(len(events))
    rows = _Rows(part)
    for row, event in enumerate(events):
        phase = event.ph
        if phase == "X":
            rows[event.cat].append(row)
        elif phase == "M":
            part.metadata.append(event)
        elif phase == "B" or phase == "E":
            part.halves.append((row, event))
    part.capitalised = "Operator" in rows
    rows.fill(events, strings)
    return part


def pair(halves: Iterable[tuple[int, Event]], strings: Strings) -> tuple[Part, list[str]]:
    """Make complete events of begin and end events. An end closes the last open begin of its process, thread and name,
    else the last of its thread. Their order in the file does not matter."""
    complete: dict[int, Event] = {}
    strays = unclosed = 0
    threads: dict[tuple[str, str], list[tuple[int, Event]]] = {}
    for row, half in halves:
        threads.setdefault((str(half.pid), str(half.tid)), []).append((row, half))
        if half.ph == "B":
            complete[row] = half
    for thread in threads.values():
        lone_begins, lone_ends = _pair_thread([half for _, half in sorted(thread, key=lambda half: _moment(half[1]))])
        unclosed, strays = unclosed + lone_begins, strays + lone_ends
    part = Part()
    rows = _Rows(part)
    for row, event in complete.items():
        rows[event.cat].append(row)
    rows.fill(complete, strings)
    if not strays and not unclosed:
        return part, []
    return part, [Loss(f"{unclosed} begin events have no end (taken as instants) and {strays} end events no begin")]


def _moment(half: Event) -> tuple[bool, float, str]:
    """Sorts begin and end events by time, those without a time last."""
    return math.isnan(half.ts), half.ts, half.name


def _pair_thread(halves: Iterable[Event]) -> tuple[int, int]:
    """Set the lengths of the begins of one thread. Returns how many begins, and how many ends, are left alone.

    At one moment, what was open ends first, then the rest begins, and what has both lasts no time.
    """
    stack: list[Event] = []
    strays = 0
    for _, group in groupby(halves, key=lambda half: half.ts):
        moment = list(group)
        ends = [half for half in moment if half.ph == "E" and not _close(stack, half, bool(half.name))]
        stack += [half for half in moment if half.ph == "B"]
        for half in ends:
            if not _close(stack, half, named=True) and not _close(stack, half, named=False):
                strays += 1
    return len(stack), strays


def _close(stack: list[Event], end: Event, named: bool) -> bool:
    """Close the last open begin that has the end's name, or any name; ``False`` where there is none."""
    for place in range(len(stack) - 1, -1, -1):
        begin = stack[place]
        if not named or begin.name == end.name:
            begin.dur = end.ts - begin.ts
            begin.args = begin.args or end.args
            del stack[place]
            return True
    return False


def empty_columns(table: str) -> Columns:
    """The columns of ``table``, with no rows."""
    return _columns(table, _NO_ROWS, [], Strings())


def _columns(table: str, rows: Int, events: list[Event], strings: Strings) -> Columns:
    """The columns of a table; leaves out the events whose time is missing or impossible."""
    start, length = packed("d", [event.ts for event in events]), packed("d", [event.dur or 0.0 for event in events])
    # So neither is NaN. A length below 0 counts as 0.
    timed = (np.abs(start) <= LONGEST_US) & (np.abs(length) <= LONGEST_US) & (start + length <= LONGEST_US)
    if not timed.all():
        rows, events = rows[timed], list(compress(events, timed))
        start, length = start[timed], length[timed]
    return {
        "ts": nanoseconds(start),
        "dur": np.maximum(nanoseconds(length), 0),
        "name": strings.column([event.name for event in events]),
        **_OWN[table](events, strings),
        "row": rows,
    }


# ------------------------------------------------------------------------------------- the columns of each table


def _thread(events: Sequence[Event], _: Strings) -> Columns:
    return {"pid": integers([e.pid for e in events]), "tid": integers([e.tid for e in events])}


def _ops(events: Sequence[Event], strings: Strings) -> Columns:
    args = _args(events)
    return _thread(events, strings) | {
        "external_id": _external(args),
        "sequence": integers([a.sequence for a in args]),
        "forward_tid": integers([a.forward_tid for a in args]),
    }


def _runtime(events: Sequence[Event], strings: Strings) -> Columns:
    args = _args(events)
    return _thread(events, strings) | {
        "correlation": integers([a.correlation for a in args]),
        "external_id": _external(args),
        "bytes": integers([a.bytes if a.size is None else a.size for a in args]),
        "copy_kind": integers([a.kind for a in args]),
    }


def _device(events: Sequence[Event], strings: Strings) -> Columns:
    """``copied`` is the name that the arguments give a copy; ``collective`` is the argument as it is; ``process`` is
    what the file calls a process: the device, but for a file into which several were merged."""
    args = _args(events)
    return {
        "device": (device := _first(integers([a.device for a in args]), (e.pid for e in events))),
        "process": _first(integers([e.pid for e in events]), device),
        "stream": _first(integers([a.stream for a in args]), (_stream(e.tid) for e in events)),
        "correlation": integers([a.correlation for a in args]),
        "external_id": _external(args),
        "bytes": _sizes(args),
        "copied": strings.texts([None if a.copy_kind is None else _copied(a) for a in args]),
        "collective": strings.texts([None if a.collective is None else _collective(a) for a in args]),
        "group": strings.texts([a.group for a in args]),
        "graph": integers([a.graph for a in args]),
    }


def _sync(events: Sequence[Event], _: Strings) -> Columns:
    args = _args(events)
    return {
        "device": (device := integers([a.device for a in args])),
        "process": _first(integers([e.pid for e in events]), device),
        "stream": integers([a.stream for a in args]),
        "correlation": integers([a.correlation for a in args]),
        "wait_on_stream": integers([a.wait_on_stream for a in args]),
        "wait_on_event_correlation": integers([a.wait_on_event for a in args]),
    }


def _frames(events: Sequence[Event], strings: Strings) -> Columns:
    args = _args(events)
    parents = [-1 if a.python_parent is None else a.python_parent for a in args]  # null at a root
    return _thread(events, strings) | {"id": integers([a.python_id for a in args]), "parent": integers(parents)}


def _device_annotations(events: Sequence[Event], _: Strings) -> Columns:
    device = integers([e.pid for e in events])
    return {"device": device, "process": device, "stream": integers([_stream(e.tid) for e in events])}


_OWN: dict[str, Callable[[Sequence[Event], Strings], Columns]] = {
    "ops": _ops,
    "runtime": _runtime,
    "kernel": _device,
    "memcpy": _device,
    "memset": _device,
    "sync": _sync,
    "frames": _frames,
    "annotations": _thread,
    "device_annotations": _device_annotations,
}


def _args(events: Sequence[Event]) -> list[Args]:
    return [event.args or NO_ARGS for event in events]


def _external(args: Sequence[Args]) -> Int:
    ids = [a.external_id for a in args]
    if None not in ids:
        return integers(ids)
    return integers([a.external_id_old if one is None else one for a, one in zip(args, ids, strict=True)])


def _first(preferred: Int, other: Iterable[object]) -> Int:
    return np.where(preferred < 0, integers(list(other)), preferred) if (preferred < 0).any() else preferred


def _stream(tid: object) -> object:
    """The stream's number: ``stream 7`` in old traces, the ``tid`` itself in later ones."""
    return tid.removeprefix("stream ").split(" ")[0] if isinstance(tid, str) else tid


def _copied(args: Args) -> str | None:
    if not isinstance(args.copy_kind, str):
        return None
    return f"Memcpy {args.copy_kind} ({args.source_kind} -> {args.target_kind})"


def _collective(args: Args) -> str | None:
    return args.collective if isinstance(args.collective, str) else None


def _sizes(args: Sequence[Args]) -> Int:
    """Bytes of each row. A collective's are those of its larger message where nothing else says them; −1 unknown."""
    size = integers([a.bytes for a in args])
    typed = [row for row, a in enumerate(args) if a.dtype]
    if not typed:
        return size
    messages = [args[row] for row in typed]
    elements = np.maximum(integers([a.elements_in for a in messages]), integers([a.elements_out for a in messages]))
    each = integers([item_size(str(a.dtype)) for a in messages])
    sane = (elements >= 0) & (elements < MOST_ELEMENTS) & (each > 0)
    size = size.copy()
    size[typed] = np.where(size[typed] < 0, np.where(sane, np.where(sane, elements, 0) * each, -1), size[typed])
    return size
