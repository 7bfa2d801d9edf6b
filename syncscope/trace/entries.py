"""What is kept of traces in the user's cache folder, on request.

An entry is a file: a line that says of what version it is, a checksum, and what it holds. It is valid as long as the
trace's file has the same size, time, head and tail. An entry of another version, or one that is damaged or unreadable,
is ignored and written again. A reader never sees half of one. Nothing in an entry is ever executed.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

from isal import isal_zlib

from syncscope.trace.extras import require
from syncscope.trace.writing import PRIVATE, write_atomically

LIMIT = 4 << 30
"""Bytes of all entries together. Beyond that, those that were not used for the longest time are deleted."""

ENDS = 64 << 10
"""Bytes of a trace's head and tail that are compared."""

SUFFIXES = (".columns", ".judged")
"""What entries hold: a trace's columns, and what was found in it."""

_CHECKSUM = 4


class Entry:
    """What is kept of the trace at ``path`` under one of the ``SUFFIXES``. Raises :class:`.MissingExtra` without the
    extra ``cache``."""

    def __init__(self, path: str, suffix: str, magic: bytes, asked: bytes = b"") -> None:
        """``magic`` is the first line, with the version. What was ``asked`` of a trace has an entry of its own."""
        require("cache", load=False)
        import platformdirs

        self.fingerprint = fingerprint(path)
        """Of the trace's file, empty where there is none."""
        self._magic = magic
        place = os.path.realpath(path).encode(errors="surrogateescape")
        name = hashlib.sha256(place + b"\0" + asked if asked else place).hexdigest()[:32]
        self._file = platformdirs.user_cache_path("syncscope") / f"{name}{suffix}"

    def read(self) -> memoryview | None:
        """What the entry holds; ``None`` where there is none that is whole."""
        try:
            data = memoryview(self._file.read_bytes())
            if not self.fingerprint or not self._is_whole(data):
                return None
            os.utime(self._file)
        except (OSError, ValueError):
            return None
        return data[len(self._magic) + _CHECKSUM :]

    def write(self, pack: Callable[[], Any]) -> None:
        """Keep what ``pack`` returns. Does nothing where that is impossible."""
        if not self.fingerprint:
            return
        folder = self._file.parent
        with contextlib.suppress(OSError):
            folder.mkdir(parents=True, exist_ok=True)
            body = pack()
            checksum = isal_zlib.crc32(body).to_bytes(_CHECKSUM, "little")
            write_atomically(self._file, (self._magic, checksum, body), PRIVATE)
            _delete_unused(folder, self._file)

    def _is_whole(self, data: memoryview) -> bool:
        start = len(self._magic) + _CHECKSUM
        checksum = int.from_bytes(data[len(self._magic) : start], "little")
        return (
            data[: len(self._magic)] == self._magic and len(data) > start and isal_zlib.crc32(data[start:]) == checksum
        )


def fingerprint(path: str) -> bytes:
    """A hash of a file's size, time, head and tail; empty where there is no file."""
    try:
        with open(path, "rb") as file:
            status = os.fstat(file.fileno())
            digest = hashlib.sha256(f"{status.st_size} {status.st_mtime_ns} ".encode())
            digest.update(file.read(ENDS))
            file.seek(max(0, status.st_size - ENDS))
            digest.update(file.read(ENDS))
            return digest.digest()
    except (OSError, ValueError):
        return b""


def _delete_unused(folder: Path, newest: Path) -> None:
    """Delete the entries that were not used for the longest time, until the rest is within the limit. Another process
    may delete some meanwhile."""
    status = {}
    for file in folder.iterdir():
        if file.suffix in SUFFIXES and file != newest:
            with contextlib.suppress(FileNotFoundError):
                status[file] = file.stat()
    size = newest.stat().st_size + sum(one.st_size for one in status.values())
    for file in sorted(status, key=lambda file: status[file].st_mtime):
        if size <= LIMIT:
            return
        size -= status[file].st_size
        file.unlink(missing_ok=True)
