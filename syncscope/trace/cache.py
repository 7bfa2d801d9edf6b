"""Traces kept as columns in the user's cache folder, on request. Reading one from there takes a tenth of the time.

What an entry (``entries``) holds is Arrow streams, the first with everything that is no table, then one for each table.
"""

from __future__ import annotations

import contextlib
from typing import Any

import msgspec
import numpy as np
import pandas as pd

from syncscope import __version__
from syncscope.schema.recording import Recording
from syncscope.trace import model
from syncscope.trace.entries import Entry
from syncscope.trace.model import Device, Trace

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


def _pack(trace: Trace, fingerprint: bytes) -> Any:
    import pyarrow as pa

    others = (name for name in _Rest.__struct_fields__ if name != "fingerprint")
    rest = _Rest(fingerprint, **{name: getattr(trace, name) for name in others})
    tables = [pa.table({"rest": pa.array([msgspec.msgpack.encode(rest)], type=pa.binary())})]
    tables += [_to_arrow(getattr(trace, name)) for name in model.TABLES]
    sink = pa.BufferOutputStream()
    for table in tables:
        with pa.ipc.new_stream(sink, table.schema, options=pa.ipc.IpcWriteOptions(compression="lz4")) as writer:
            writer.write_table(table)
    return memoryview(sink.getvalue())


def _unpack(data: memoryview, path: str, fingerprint: bytes) -> Trace | None:
    import pyarrow as pa

    source = pa.BufferReader(data)
    rest = msgspec.msgpack.decode(pa.ipc.open_stream(source).read_all()["rest"][0].as_py(), type=_Rest)
    if rest.fingerprint != fingerprint:
        return None
    fields: dict[str, Any] = msgspec.structs.asdict(rest)
    del fields["fingerprint"]
    fields |= {
        name: _to_pandas(pa.ipc.open_stream(source).read_all(), table.types) for name, table in model.TABLES.items()
    }
    return Trace(path=path, **fields)


def _to_arrow(frame: pd.DataFrame) -> Any:
    import pyarrow as pa

    def column(values: pd.Series[Any]) -> Any:
        if values.dtype != "category":
            return pa.array(values.to_numpy())
        return pa.DictionaryArray.from_arrays(
            pa.array(values.cat.codes.to_numpy()), pa.array(list(values.cat.categories), type=pa.string())
        )

    return pa.table({name: column(frame[name]) for name in frame.columns})


def _to_pandas(table: Any, types: dict[str, str]) -> pd.DataFrame:
    def column(name: str, type: str) -> Any:
        values = table[name].combine_chunks()
        if type != "category":
            return values.to_numpy(zero_copy_only=False).astype(np.int64)
        names = pd.Index(values.dictionary.to_pylist(), dtype="str")
        return pd.Categorical.from_codes(values.indices.to_numpy(zero_copy_only=False), categories=names)

    return pd.DataFrame({name: column(name, type) for name, type in types.items()}, copy=False)
