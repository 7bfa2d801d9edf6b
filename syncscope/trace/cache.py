"""Traces kept as columns in the user's cache folder, on request. Reading one from there takes a tenth of the time.

An entry is a file: :data:`MAGIC`, a checksum, and Arrow streams, the first with everything that is no table, then one
for each table. It is valid as long as the trace's file has the same size, time, head and tail. An entry of another
version, or one that is damaged or unreadable, is ignored and written again. Nothing in an entry is ever executed.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
from isal import isal_zlib

from syncscope import __version__
from syncscope.schema.recording import Recording
from syncscope.trace import model
from syncscope.trace.extras import require
from syncscope.trace.model import Device, Trace
from syncscope.trace.rows import Rows, Texts
from syncscope.trace.writing import PRIVATE, write_atomically

MAGIC = f"SYNCSCOPE {__version__} trace 5\n".encode()
"""Increase the number with every change of what an entry holds or of how a trace is read."""

LIMIT = 4 << 30
"""Bytes of all entries together. Beyond that, those that were not used for the longest time are deleted."""

ENDS = 64 << 10
"""Bytes of a trace's head and tail that are compared."""

_SUFFIX = ".columns"
_CHECKSUM = 4


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
        import platformdirs

        self._fingerprint = _fingerprint(path)
        name = hashlib.sha256(os.path.realpath(path).encode(errors="surrogateescape")).hexdigest()[:32]
        self._file = platformdirs.user_cache_path("syncscope") / f"{name}{_SUFFIX}"

    def load(self, path: str) -> Trace | None:
        """The trace, with ``path`` as its path; ``None`` where there is no valid entry."""
        try:
            data = memoryview(self._file.read_bytes())
            if self._fingerprint is None or not _is_whole(data):
                return None
            trace = _unpack(data[len(MAGIC) + _CHECKSUM :], path, self._fingerprint)
            os.utime(self._file)
        except (OSError, ValueError, LookupError, TypeError, NotImplementedError, msgspec.MsgspecError):
            return None
        return trace

    def store(self, trace: Trace) -> None:
        """Keep the columns for the next time. Does nothing where that is impossible."""
        if self._fingerprint is None:
            return
        folder = self._file.parent
        with contextlib.suppress(OSError, ValueError, OverflowError):
            folder.mkdir(parents=True, exist_ok=True)
            body = _pack(trace, self._fingerprint)
            checksum = isal_zlib.crc32(body).to_bytes(_CHECKSUM, "little")
            write_atomically(self._file, (MAGIC, checksum, body), PRIVATE)
            _delete_unused(folder, self._file)


def _fingerprint(path: str) -> bytes | None:
    """A hash of a file's size, time, head and tail. ``None`` where there is no file."""
    try:
        with open(path, "rb") as file:
            status = os.fstat(file.fileno())
            digest = hashlib.sha256(f"{status.st_size} {status.st_mtime_ns} ".encode())
            digest.update(file.read(ENDS))
            file.seek(max(0, status.st_size - ENDS))
            digest.update(file.read(ENDS))
            return digest.digest()
    except (OSError, ValueError):
        return None


def _is_whole(data: memoryview) -> bool:
    start = len(MAGIC) + _CHECKSUM
    checksum = int.from_bytes(data[len(MAGIC) : start], "little")
    return data[: len(MAGIC)] == MAGIC and len(data) > start and isal_zlib.crc32(data[start:]) == checksum


def _delete_unused(folder: Path, newest: Path) -> None:
    """Delete the entries that were not used for the longest time, until the rest is within the limit."""
    others = [file for file in folder.glob(f"*{_SUFFIX}") if file != newest]
    status = {file: file.stat() for file in others}
    size = newest.stat().st_size + sum(one.st_size for one in status.values())
    for file in sorted(others, key=lambda file: status[file].st_mtime):
        if size <= LIMIT:
            return
        size -= status[file].st_size
        file.unlink()


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
