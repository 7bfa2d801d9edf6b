"""Traces that were read, kept as columns in the user's cache folder: opt in, and read in a tenth of the time.

A file holds :data:`MAGIC`, a checksum, and then Arrow streams: of one row with all that is no table, and of each table.
It stands for the trace that it was read from as long as that has the same size, time, head and tail. One that is of
another version, damaged or not readable is passed over and written anew; nothing in it is ever run.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import tempfile
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pandas as pd
from isal import isal_zlib

from syncscope import __version__
from syncscope.schema.recording import Recording
from syncscope.trace import model
from syncscope.trace.model import Device, Trace

MAGIC = f"SYNCSCOPE {__version__} trace 1\n".encode()
"""The number goes up with every change of what is kept or of how a trace is read."""

LIMIT = 4 << 30
"""Bytes of all that is kept; beyond, what was not used for the longest time goes."""

ENDS = 64 << 10
_SUFFIX = ".columns"
_CHECKSUM = 4


class CacheMissing(ImportError):
    """The libraries of the extra ``cache`` are not there."""


def require() -> None:
    """Raises :class:`CacheMissing` without the extra ``cache``."""
    try:
        import platformdirs  # noqa: F401
        import pyarrow  # noqa: F401
    except ImportError:
        raise CacheMissing("a cache needs pyarrow and platformdirs: pip install 'syncscope[cache]'") from None


class _Rest(msgspec.Struct):
    """What of a :class:`Trace` is no table, and what tells its file."""

    stamp: bytes
    base_ns: int
    step_source: str
    devices: tuple[Device, ...]
    rank: int | None
    world_size: int | None
    pid: int | None
    thread_names: dict[int, str]
    recording: Recording | None
    warnings: tuple[str, ...]


class Place:
    """Where the columns of one trace are kept. Raises :class:`CacheMissing`."""

    def __init__(self, path: str) -> None:
        require()
        import platformdirs

        self._stamp = _stamp(path)
        name = hashlib.sha256(os.path.realpath(path).encode(errors="surrogateescape")).hexdigest()[:32]
        self._file = platformdirs.user_cache_path("syncscope") / f"{name}{_SUFFIX}"

    def load(self, path: str) -> Trace | None:
        """The trace, called ``path``; ``None`` where it is not kept as it is now."""
        try:
            data = memoryview(self._file.read_bytes())
            if self._stamp is None or not _is_whole(data):
                return None
            trace = _unpacked(data[len(MAGIC) + _CHECKSUM :], path, self._stamp)
            os.utime(self._file)
        except (OSError, ValueError, LookupError, TypeError, NotImplementedError, msgspec.MsgspecError):
            return None
        return trace

    def keep(self, trace: Trace) -> None:
        """Keep the columns for the next time; what cannot be kept is no matter."""
        if self._stamp is None:
            return
        folder = self._file.parent
        with contextlib.suppress(OSError, ValueError, OverflowError):
            folder.mkdir(parents=True, exist_ok=True)
            descriptor, temporary = tempfile.mkstemp(dir=folder)
            try:
                with open(descriptor, "wb") as file:
                    body = _packed(trace, self._stamp)
                    file.write(MAGIC + isal_zlib.crc32(body).to_bytes(_CHECKSUM, "little"))
                    file.write(body)
                os.replace(temporary, self._file)
            finally:
                Path(temporary).unlink(missing_ok=True)
            _forget(folder, self._file)


def _stamp(path: str) -> bytes | None:
    """What tells a file from what it was: its size, its time, its head and its tail. ``None`` for no file."""
    try:
        with open(path, "rb") as file:
            status = os.fstat(file.fileno())
            told = hashlib.sha256(f"{status.st_size} {status.st_mtime_ns} ".encode())
            told.update(file.read(ENDS))
            file.seek(max(0, status.st_size - ENDS))
            told.update(file.read(ENDS))
            return told.digest()
    except (OSError, ValueError):
        return None


def _is_whole(data: memoryview) -> bool:
    start = len(MAGIC) + _CHECKSUM
    checksum = int.from_bytes(data[len(MAGIC) : start], "little")
    return data[: len(MAGIC)] == MAGIC and len(data) > start and isal_zlib.crc32(data[start:]) == checksum


def _forget(folder: Path, newest: Path) -> None:
    """Remove what was not used for the longest time, until the rest is within the limit."""
    others = [file for file in folder.glob(f"*{_SUFFIX}") if file != newest]
    kept = {file: file.stat() for file in others}
    size = newest.stat().st_size + sum(status.st_size for status in kept.values())
    for file in sorted(others, key=lambda file: kept[file].st_mtime):
        if size <= LIMIT:
            return
        size -= kept[file].st_size
        file.unlink()


def _packed(trace: Trace, stamp: bytes) -> Any:
    import pyarrow as pa

    rest = _Rest(stamp, **{name: getattr(trace, name) for name in _Rest.__struct_fields__ if name != "stamp"})
    tables = [pa.table({"rest": pa.array([msgspec.msgpack.encode(rest)], type=pa.binary())})]
    tables += [_to_arrow(getattr(trace, name)) for name in model.CONTRACTS]
    sink = pa.BufferOutputStream()
    for table in tables:
        with pa.ipc.new_stream(sink, table.schema, options=pa.ipc.IpcWriteOptions(compression="lz4")) as writer:
            writer.write_table(table)
    return memoryview(sink.getvalue())


def _unpacked(data: memoryview, path: str, stamp: bytes) -> Trace | None:
    import pyarrow as pa

    source = pa.BufferReader(data)
    rest = msgspec.msgpack.decode(pa.ipc.open_stream(source).read_all()["rest"][0].as_py(), type=_Rest)
    if rest.stamp != stamp:
        return None
    fields: dict[str, Any] = msgspec.structs.asdict(rest)
    del fields["stamp"]
    fields |= {
        name: _to_pandas(pa.ipc.open_stream(source).read_all(), kinds) for name, kinds in model.CONTRACTS.items()
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


def _to_pandas(table: Any, kinds: dict[str, str]) -> pd.DataFrame:
    def column(name: str, kind: str) -> Any:
        values = table[name].combine_chunks()
        if kind != "category":
            return values.to_numpy(zero_copy_only=False).astype(np.int64)
        names = pd.Index(values.dictionary.to_pylist(), dtype="str")
        return pd.Categorical.from_codes(values.indices.to_numpy(zero_copy_only=False), categories=names)

    return pd.DataFrame({name: column(name, kind) for name, kind in kinds.items()}, copy=False)
