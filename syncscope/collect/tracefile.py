"""Write the trace file: torch's own export with our key in it, compressed, whole or not at all."""

from __future__ import annotations

import gzip
import re
import zlib
from pathlib import Path

import msgspec
from isal import igzip

from syncscope.schema.recording import Recording
from syncscope.trace.writing import write_atomically

COMPRESSION = 2
"""isal's middle level: about zlib's level 4 at several times its speed."""

# Kineto names the temporary file, and the host from 2.12 on. Recordings do not name the machine.
_PRIVATE = re.compile(rb'"(host_name|traceName)"\s*:\s*"(?:[^"\\]|\\.)*"')

HEAD_BYTES = 64 * 1024
_HEAD = re.compile(rb'^\s*\{\s*"syncscopeRun":\s*(\{[^{}]*\})')
_RECORDING = b'"syncscope": {"format":'


class Head(msgspec.Struct, frozen=True, kw_only=True):
    """Whose recording a file holds, as its first key ``syncscopeRun`` says: to be read without the rest."""

    run: str
    """``RecordedRun.id``"""
    pid: int
    rank: int | None = None
    world_size: int | None = None
    complete: bool
    """The program had come to its end."""


def splice(exported: bytes, recording: Recording) -> bytes:
    """Add the ``syncscope`` key to ``exported``, a chrome trace with an object at its root, before its last brace.

    A recording of a whole run gets its ``Head`` after the first brace. ``add_metadata_json`` of torch would corrupt
    escaped quotes. Raises ``ValueError`` where there is no object.
    """
    end = exported.rstrip()
    if not end.endswith(b"}"):
        raise ValueError("torch exported no complete trace")
    body = end[:-1].rstrip()
    separator = b"" if body.endswith(b"{") else b","
    body = _with_head(body, recording)
    head, tail = body[:65536], body[65536:]
    middle, tail = (tail[:-65536], tail[-65536:]) if len(tail) > 65536 else (b"", tail)
    key = msgspec.json.encode(recording)
    return b"".join(
        (_blank(head), middle, _blank(tail), separator, b'\n  "syncscope": ', key, b"\n}\n"),
    )


def _with_head(body: bytes, recording: Recording) -> bytes:
    opened = body.lstrip()
    if recording.run is None or recording.pid is None or not opened.startswith(b"{"):
        return body
    run, pid = recording.run, recording.pid
    head = Head(
        run=run.id, pid=pid, rank=recording.rank, world_size=recording.world_size, complete=run.complete
    )  # fmt: skip
    rest = opened[1:].lstrip()
    return b"".join((b'{"syncscopeRun": ', msgspec.json.encode(head), b",\n" if rest else b"", rest))


def read_head(path: Path) -> Head | None:
    """Whose recording a file holds, ``None`` for a file that does not say or cannot be read."""
    try:
        with path.open("rb") as file:
            begin = zlib.decompressobj(wbits=31).decompress(file.read(HEAD_BYTES), HEAD_BYTES)
        found = _HEAD.match(begin)
        return msgspec.json.decode(found[1], type=Head) if found else None
    except (OSError, zlib.error, msgspec.MsgspecError):
        return None


def holds_recording(path: Path) -> bool:
    """Whether a trace file is a recording of ours, also one without a head. Raises ``OSError``."""
    if read_head(path) is not None:
        return True
    before = b""
    try:
        with gzip.open(path, "rb") as file:
            while piece := file.read(1 << 20):
                if _RECORDING in before + piece:
                    return True
                before = piece[-len(_RECORDING) :]
    except (EOFError, zlib.error):  # it was cut
        pass
    return False


def _blank(text: bytes) -> bytes:
    return _PRIVATE.sub(rb'"\1": ""', text)


def write_trace(path: Path, data: bytes) -> None:
    """Write a trace file, whole or not at all; gzipped when the name ends in ``.gz``. Makes its folder."""
    path.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(path, [igzip.compress(data, COMPRESSION) if path.suffix == ".gz" else data])
