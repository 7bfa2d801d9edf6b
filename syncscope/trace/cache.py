"""Traces kept as columns in the user's cache folder, on request. Reading one from there takes a tenth of the time.

What an entry (``entries``) holds is Arrow streams, the first with everything that is no table, then one for each table.
"""

from __future__ import annotations

import contextlib
from typing import Any

import msgspec
import numpy as np

from syncscope import __version__
from syncscope.schema.recording import Recording
from syncscope.trace import model
from syncscope.trace.entries import Entry
from syncscope.trace.extras import require
from syncscope.trace.model import Device, Trace
from syncscope.trace.rows import Rows, Texts

MAGIC = f"SYNCSCOPE {__version__} trace 5\n".encode()
"""Increase the number with every change of what an entry holds or of how a trace is read."""

_SUFFIX = ".columns"


class _Rest(msgspec.Struct):
    """What of a :class:`Trace` is no table, and the fingerprint of its file."""

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
        except (OSError, ValueError, LookupError, TypeError, NotImplementedError, msgspec.MsgspecError):
            return None

    def store(self, trace: Trace) -> None:
        """Keep the columns for the next time. Does nothing where that is impossible."""
        with contextlib.suppress(ValueError, OverflowError):
            self._entry.write(lambda: _pack(trace, self._entry.fingerprint))
            _free_packed()


def _pack(trace: Trace, fingerprint: bytes) -> Any:
    import pyarrow as pa

    others = (name for name in _Rest.__struct_fields__ if name != "fingerprint")
    rest = _Rest(fingerprint, **{name: getattr(trace, name) for name in others})
    tables = [pa.table({"rest": pa.array([msgspec.msgpack.encode(rest)], type=pa.binary())})]
    tables += [_to_arrow(trace.rows[name], table) for name, table in model.TABLES.items()]
    sink = pa.BufferOutputStream()
    for table in tables:
        with pa.ipc.new_stream(sink, table.schema, options=pa.ipc.IpcWriteOptions(compression="lz4")) as writer:
            writer.write_table(table)
    return memoryview(sink.getvalue())


def _free_packed() -> None:
    """Give back what Arrow keeps of an entry that is written."""
    import pyarrow as pa

    pa.default_memory_pool().release_unused()


def _unpack(data: memoryview, path: str, fingerprint: bytes) -> Trace | None:
    import pyarrow as pa

    source = pa.BufferReader(data)
    rest = msgspec.msgpack.decode(pa.ipc.open_stream(source).read_all()["rest"][0].as_py(), type=_Rest)
    if rest.fingerprint != fingerprint:
        return None
    fields: dict[str, Any] = msgspec.structs.asdict(rest)
    del fields["fingerprint"]
    rows = {name: _to_rows(pa.ipc.open_stream(source).read_all(), table.types) for name, table in model.TABLES.items()}
    return Trace(path=path, rows=rows, **fields)


def _to_arrow(rows: Rows, table: model.Table) -> Any:
    import pyarrow as pa

    def column(name: str) -> Any:
        if name in rows.numbers:
            return pa.array(rows.numbers[name])
        texts = rows.texts[name]
        return pa.DictionaryArray.from_arrays(pa.array(texts.codes), pa.array(list(texts.names), type=pa.string()))

    return pa.table({name: column(name) for name in table.columns})


def _to_rows(table: Any, types: dict[str, str]) -> Rows:
    rows = Rows({}, {})
    for name, type in types.items():
        values = table[name].combine_chunks()
        if type == "category":
            codes = values.indices.to_numpy(zero_copy_only=False)
            rows.texts[name] = Texts.of(codes, values.dictionary.to_pylist())
        else:
            rows.numbers[name] = values.to_numpy(zero_copy_only=False).astype(np.int64)
    return rows
