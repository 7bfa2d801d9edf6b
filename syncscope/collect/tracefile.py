"""Write the trace file: torch's own export with our key in it, compressed, whole or not at all."""

from __future__ import annotations

import re
from pathlib import Path

import msgspec
from isal import igzip

from syncscope.schema.recording import Recording
from syncscope.trace.writing import write_atomically

COMPRESSION = 2
"""isal's middle level: about zlib's level 4 at several times its speed."""

# Kineto names the temporary file, and the host from 2.12 on. Recordings do not name the machine.
_PRIVATE = re.compile(rb'"(host_name|traceName)"\s*:\s*"(?:[^"\\]|\\.)*"')


def splice(exported: bytes, recording: Recording) -> bytes:
    """Add the ``syncscope`` key to ``exported``, a chrome trace with an object at its root, before its last brace.

    ``add_metadata_json`` of torch would corrupt escaped quotes. Raises ``ValueError`` where there is no object.
    """
    end = exported.rstrip()
    if not end.endswith(b"}"):
        raise ValueError("torch exported no complete trace")
    body = end[:-1].rstrip()
    separator = b"" if body.endswith(b"{") else b","
    head, tail = body[:65536], body[65536:]
    middle, tail = (tail[:-65536], tail[-65536:]) if len(tail) > 65536 else (b"", tail)
    key = msgspec.json.encode(recording)
    return b"".join(
        (_blank(head), middle, _blank(tail), separator, b'\n  "syncscope": ', key, b"\n}\n"),
    )


def _blank(text: bytes) -> bytes:
    return _PRIVATE.sub(rb'"\1": ""', text)


def write_trace(path: Path, data: bytes) -> None:
    """Write a trace file, whole or not at all; gzipped when the name ends in ``.gz``. Makes its folder."""
    path.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(path, [igzip.compress(data, COMPRESSION) if path.suffix == ".gz" else data])
