"""Traces kept as columns in the user's cache folder, on request. Reading one from there takes a tenth of the time.

What an entry (``entries``) holds is msgpack: everything that is no table, and each column on its own, as narrow as its
numbers are, deflated. Arrow would take as long to import, and as much memory, as a trace of 200 MB has columns.
"""

from __future__ import annotations

import contextlib
from typing import Any, cast

import msgspec
import numpy as np
from isal import isal_zlib
from numpy.typing import NDArray

from syncscope import __version__
from syncscope.schema.recording import Recording
from syncscope.trace import model
from syncscope.trace.entries import Entry
from syncscope.trace.extras import require
from syncscope.trace.model import Device, Trace
from syncscope.trace.rows import Rows, Texts

MAGIC = f"SYNCSCOPE {__version__} trace 8\n".encode()
"""Increase the number with every change of what an entry holds or of how a trace is read."""

_SUFFIX = ".columns"

_LEVEL = 1
"""Of the compression: 0 to 3. More takes longer than to read the difference."""

_SORTED = "ts"
"""The column that every table is sorted by: of it the steps are kept."""


_DeflateError = cast("type[Exception]", isal_zlib.error)


class _Column(msgspec.Struct, array_like=True):
    type: str
    """The numbers' dtype."""
    data: bytes
    """The numbers, deflated."""
    names: list[str] | None
    """Of texts, of which the numbers are codes."""


class _Kept(msgspec.Struct):
    """A :class:`Trace`, and the fingerprint of its file."""

    fingerprint: bytes
    base_ns: int
    step_source: str
    devices: tuple[Device, ...]
    rank: int | None
    world_size: int | None
    pid: int | None
    thread_names: dict[int, str]
    recording: Recording | None
    warnings: tuple[str, ...]
    lost: tuple[str, ...]
    group_names: dict[str, str]
    ranks_in_file: int
    tables: dict[str, dict[str, _Column]]


class CacheEntry:
    """The columns of the trace at ``path``, kept or not. Raises :class:`.MissingExtra` without the extra ``cache``."""

    def __init__(self, path: str) -> None:
        require("cache")
        self._entry = Entry(path, _SUFFIX, MAGIC)

    def load(self, path: str) -> Trace | None:
        """The trace, with ``path`` as its path; ``None`` where there is no valid entry."""
        body = self._entry.read()
        if body is None:
            return None
        try:
            return _unpack(body, path, self._entry.fingerprint)
        except (ValueError, LookupError, TypeError, _DeflateError, msgspec.MsgspecError):
            return None

    def store(self, trace: Trace) -> None:
        """Keep the columns for the next time. Does nothing where that is impossible."""
        with contextlib.suppress(ValueError, OverflowError):
            self._entry.write(lambda: _pack(trace, self._entry.fingerprint))


def _pack(trace: Trace, fingerprint: bytes) -> bytes:
    tables = {name: _pack_table(trace.rows[name], table) for name, table in model.TABLES.items()}
    others = (name for name in _Kept.__struct_fields__ if name not in ("fingerprint", "tables"))
    fields: dict[str, Any] = {name: getattr(trace, name) for name in others}
    return msgspec.msgpack.encode(_Kept(fingerprint=fingerprint, tables=tables, **fields))


def _pack_table(rows: Rows, table: model.Table) -> dict[str, _Column]:
    def column(name: str) -> _Column:
        if name in rows.texts:
            texts = rows.texts[name]
            return _column(texts.codes, list(texts.names))
        numbers = rows.numbers[name]
        return _column(np.diff(numbers, prepend=0) if name == _SORTED else numbers)

    return {name: column(name) for name in table.columns}


def _column(numbers: NDArray[np.integer], names: list[str] | None = None) -> _Column:
    low, high = int(numbers.min(initial=-1)), int(numbers.max(initial=0))
    narrow = numbers.astype(np.promote_types(np.min_scalar_type(low), np.min_scalar_type(-1 - high)))
    return _Column(narrow.dtype.str, isal_zlib.compress(narrow, _LEVEL), names)


def _unpack(data: memoryview, path: str, fingerprint: bytes) -> Trace | None:
    kept = msgspec.msgpack.decode(data, type=_Kept)
    if kept.fingerprint != fingerprint:
        return None
    others = (name for name in _Kept.__struct_fields__ if name not in ("fingerprint", "tables"))
    fields: dict[str, Any] = {name: getattr(kept, name) for name in others}
    rows = {name: _unpack_table(kept.tables[name], table) for name, table in model.TABLES.items()}
    return Trace(path=path, rows=rows, **fields)


def _unpack_table(columns: dict[str, _Column], table: model.Table) -> Rows:
    """The rows of a table. Raises ``ValueError`` for columns of different lengths, for what is no whole number, and for
    codes without a name."""
    rows, lengths = Rows({}, {}), set()
    for name, type in table.types.items():
        column = columns[name]
        if np.dtype(column.type).kind != "i":
            raise ValueError("no whole numbers")
        numbers = np.frombuffer(isal_zlib.decompress(column.data), dtype=column.type)
        lengths.add(len(numbers))
        if type != "category":
            rows.numbers[name] = np.cumsum(numbers, dtype=np.int64) if name == _SORTED else numbers.astype(np.int64)
        elif column.names is None or (len(numbers) and not 0 <= numbers.min() <= numbers.max() < len(column.names)):
            raise ValueError("a code without a name")
        else:
            rows.texts[name] = Texts.of(numbers, column.names)
    if len(lengths) > 1:
        raise ValueError("columns of different lengths")
    return rows
