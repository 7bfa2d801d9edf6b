"""Write trace files, compressed, whole or not at all: torch's own export with our key in it.

A file is one gzip member. Its data are what torch exported, without the last brace, and then our key and the brace. As
the run goes on only the second part is compressed anew. The extra field of gzip's header says whose recording it is
(``Head``), so that nothing needs to be decompressed to know.
"""

from __future__ import annotations

import itertools
import json
import re
import struct
import zlib
from collections.abc import Iterable, Iterator
from pathlib import Path

import msgspec
from isal import igzip, isal_zlib

from syncscope.schema.recording import Recording
from syncscope.trace.writing import write_atomically

COMPRESSION = 2
"""isal's middle level: about zlib's level 4 at several times its speed."""

NO_EVENTS = b'{"schemaVersion": 1, "traceEvents": []}'
"""The export of a recording without a window."""

PIECE = 1 << 20
"""Bytes copied at once."""

# RFC 1952: magic, deflate, the flag FEXTRA, no time, no extra flags, an unknown system; then the length of the field.
_HEADER = struct.Struct("<2sBBIBBH")
_FIELD = struct.Struct("<2sH")
_MAGIC, _DEFLATE, _FEXTRA, _UNKNOWN = b"\x1f\x8b", 8, 4, 255
_OURS = b"sy"
_RAW = -15
"""``wbits`` of a deflate stream without header and checksum."""

# Kineto names the temporary file, and the host from 2.12 on. Recordings do not name the machine.
_PRIVATE = re.compile(rb'"(host_name|traceName)"\s*:\s*"(?:[^"\\]|\\.)*"')
_RECORDING = b'"syncscope": {"format":'


class Head(msgspec.Struct, frozen=True, kw_only=True):
    """Whose recording a file holds."""

    run: str
    """``RecordedRun.id``"""
    pid: int
    rank: int | None = None
    world_size: int | None = None
    complete: bool
    """The program had come to its end."""


class TraceFile:
    """One trace file. ``write`` makes its folder and may be called again with a later recording."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._begin = self.size = 0
        """Where the compressed export begins in the file, and its bytes; 0 until it was written."""
        self._checksum = self._length = 0
        """Of the export."""

    @property
    def written(self) -> bool:
        """Whether the file is there."""
        return self.size > 0

    def write(self, exported: bytes, recording: Recording) -> None:
        """Write the file with ``exported``, a chrome trace with an object at its root, and our key in it.

        Raises ``ValueError`` where there is no object, ``OSError`` where the file cannot be written.
        """
        opened = _open_object(exported)
        compressor = isal_zlib.compressobj(COMPRESSION, isal_zlib.DEFLATED, _RAW)
        compressed = compressor.compress(opened) + compressor.flush(isal_zlib.Z_FULL_FLUSH)
        self._write([compressed], len(compressed), zlib.crc32(opened), len(opened), recording)

    def update(self, recording: Recording) -> None:
        """Replace our key in a file that was written before.

        Raises ``OSError`` where the file is gone or cannot be written.
        """
        self._write(self._export(), self.size, self._checksum, self._length, recording)

    def move(self, path: Path) -> None:
        """Give the file another name. Raises ``OSError``."""
        if self.written:
            self.path.replace(path)
        self.path = path

    def _export(self) -> Iterator[bytes]:
        left = self.size
        with self.path.open("rb") as file:
            file.seek(self._begin)
            while left and (piece := file.read(min(left, PIECE))):
                left -= len(piece)
                yield piece

    def _write(
        self, export: Iterable[bytes], size: int, checksum: int, length: int, recording: Recording
    ) -> None:  # fmt: skip
        key = b'\n  "syncscope": ' + _encode(recording) + b"\n}\n"
        compressor = isal_zlib.compressobj(COMPRESSION, isal_zlib.DEFLATED, _RAW)
        end = compressor.compress(key) + compressor.flush()
        end += struct.pack("<II", zlib.crc32(key, checksum), (length + len(key)) & 0xFFFFFFFF)
        header = _header(recording)
        self.path.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(self.path, itertools.chain([header], export, [end]))
        self._begin, self.size, self._checksum, self._length = len(header), size, checksum, length


def read_head(path: Path) -> Head | None:
    """Whose recording a file holds, ``None`` for a file that does not say or cannot be read."""
    try:
        with path.open("rb") as file:
            magic, method, flags, *_, size = _HEADER.unpack(file.read(_HEADER.size))
            if magic != _MAGIC or method != _DEFLATE or not flags & _FEXTRA:
                return None
            field = file.read(size)
        name, length = _FIELD.unpack(field[: _FIELD.size])
        text = field[_FIELD.size :]
        return msgspec.json.decode(text, type=Head) if name == _OURS and length == len(text) else None
    except (OSError, struct.error, msgspec.MsgspecError):
        return None


def holds_recording(path: Path) -> bool:
    """Whether a trace file is a recording of ours, also one without a head. Raises ``OSError``."""
    if read_head(path) is not None:
        return True
    before = b""
    try:
        with igzip.open(path, "rb") as file:  # type: ignore[no-untyped-call]
            while piece := file.read(PIECE):
                if _RECORDING in before + piece:
                    return True
                before = piece[-len(_RECORDING) :]
    except (EOFError, isal_zlib.error):  # type: ignore[misc]  # it was cut
        pass
    return False


def _header(recording: Recording) -> bytes:
    run = recording.run
    field = b""
    if run is not None:
        head = Head(
            run=run.id, pid=recording.pid or 0, rank=recording.rank, world_size=recording.world_size,
            complete=run.complete,
        )  # fmt: skip
        text = msgspec.json.encode(head)
        field = _FIELD.pack(_OURS, len(text)) + text
    return _HEADER.pack(_MAGIC, _DEFLATE, _FEXTRA, 0, 0, _UNKNOWN, len(field)) + field


def _encode(recording: Recording) -> bytes:
    """The recording as JSON. What UTF-8 cannot hold of a name, such as that of a file, becomes a question mark."""
    try:
        return msgspec.json.encode(recording)
    except UnicodeEncodeError:
        return json.dumps(msgspec.to_builtins(recording), ensure_ascii=False).encode(errors="replace")


def _open_object(exported: bytes) -> bytes:
    """``exported`` without its last brace, ready for another key.

    ``add_metadata_json`` of torch would corrupt escaped quotes.
    """
    end = exported.rstrip()
    if not end.endswith(b"}"):
        raise ValueError("torch exported no complete trace")
    body = end[:-1].rstrip()
    separator = b"" if body.endswith(b"{") else b","
    head, tail = body[:65536], body[65536:]
    middle, tail = (tail[:-65536], tail[-65536:]) if len(tail) > 65536 else (b"", tail)
    return b"".join((_blank(head), middle, _blank(tail), separator))


def _blank(text: bytes) -> bytes:
    return _PRIVATE.sub(rb'"\1": ""', text)
