"""Write trace files, compressed, whole or not at all: torch's own export with our key in it.

A file has two gzip members. The first holds what torch exported, without its last brace, and never changes. The second
holds our key and the brace, and is replaced as the run goes on.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable, Iterator
from pathlib import Path

import msgspec
from isal import igzip

from syncscope.schema.recording import Recording
from syncscope.trace.writing import write_atomically

COMPRESSION = 2
"""isal's middle level: about zlib's level 4 at several times its speed."""

NO_EVENTS = b'{"traceEvents": []}'
"""The export of a recording without a window."""

PIECE = 1 << 20
"""Bytes copied at once."""

# Kineto names the temporary file, and the host from 2.12 on. Recordings do not name the machine.
_PRIVATE = re.compile(rb'"(host_name|traceName)"\s*:\s*"(?:[^"\\]|\\.)*"')


class TraceFile:
    """One trace file. ``write`` makes its folder and may be called again with a later recording."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._size = 0
        """Bytes of the first member in the file, 0 until it was written."""

    def write(self, exported: bytes, recording: Recording) -> None:
        """Write the file with ``exported``, a chrome trace with an object at its root, and our key in it.

        Raises ``ValueError`` where there is no object, ``OSError`` where the file cannot be written.
        """
        first = igzip.compress(_open_object(exported), COMPRESSION)
        self._write([first, _compress_key(recording)])
        self._size = len(first)

    def update(self, recording: Recording) -> None:
        """Replace our key in a file that was written before.

        Raises ``OSError`` where the file is gone or cannot be written.
        """
        self._write(itertools.chain(self._first_member(), [_compress_key(recording)]))

    def move(self, path: Path) -> None:
        """Give the file another name. Raises ``OSError``."""
        if self._size:
            self.path.replace(path)
        self.path = path

    def _first_member(self) -> Iterator[bytes]:
        left = self._size
        with self.path.open("rb") as file:
            while left and (piece := file.read(min(left, PIECE))):
                left -= len(piece)
                yield piece

    def _write(self, pieces: Iterable[bytes]) -> None:
        self.path.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(self.path, pieces)


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


def _compress_key(recording: Recording) -> bytes:
    return igzip.compress(b'\n  "syncscope": ' + msgspec.json.encode(recording) + b"\n}\n", COMPRESSION)


def _blank(text: bytes) -> bytes:
    return _PRIVATE.sub(rb'"\1": ""', text)
