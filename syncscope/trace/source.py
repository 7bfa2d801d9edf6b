"""A path becomes the bytes of a document: refuses what is not a regular file, inflates gzip whatever the suffix."""

from __future__ import annotations

import contextlib
import os
import stat
from pathlib import Path
from typing import cast

from isal import igzip_lib, isal_zlib

MAX_BYTES = 8 << 30
"""The largest document read by default, inflated: 8 GiB."""

_GZIP = b"\x1f\x8b"
_GzipError = cast("type[Exception]", isal_zlib.error)
_PIECE = 16 << 20
_SMALL_PIECE = 1 << 10


class TraceError(ValueError):
    """A file that cannot be read as a trace. ``str()`` is one printable line, ``PATH: reason``."""

    def __init__(self, path: str | os.PathLike[str], reason: str) -> None:
        super().__init__(one_line(f"{os.fspath(path)}: {reason}"))
        self.path = os.fspath(path)
        self.reason = reason


def one_line(text: str) -> str:
    """``text`` with what could break a line, or a terminal, replaced."""
    return "".join(character if character.isprintable() else "\ufffd" for character in text)


def read(path: str, max_bytes: int = MAX_BYTES) -> tuple[bytes | bytearray, list[str]]:
    """The file's bytes, inflated, and what was lost on the way (a warning each). Raises :class:`TraceError`."""
    data = _read_file(path, max_bytes)
    if not data:
        raise TraceError(path, "is empty")
    if data.startswith(_GZIP):
        inflated, warnings = inflate(data, path, max_bytes)
        if not inflated:
            raise TraceError(path, "is empty")
        return inflated, warnings
    return data, []


def _read_file(path: str, max_bytes: int) -> bytes:
    try:
        status = os.stat(path)
        if stat.S_ISDIR(status.st_mode):
            raise TraceError(path, "is a folder, not a trace file")
        if not stat.S_ISREG(status.st_mode):
            raise TraceError(path, "is not a regular file")
        if status.st_size > max_bytes:
            raise TraceError(path, f"holds {status.st_size:,} bytes, more than the limit of {max_bytes:,}")
        return Path(path).read_bytes()
    except FileNotFoundError:
        raise TraceError(path, "does not exist") from None
    except PermissionError:
        raise TraceError(path, "cannot be read: permission denied") from None
    except OSError as error:
        raise TraceError(path, f"cannot be read: {error.strerror or error}") from None
    except TraceError:
        raise
    except ValueError:  # a NUL in the name
        raise TraceError(path, "is not a possible file name") from None


def inflate(data: bytes, path: str, max_bytes: int = MAX_BYTES) -> tuple[bytearray, list[str]]:
    """Every gzip member of ``data``; one cut short or damaged gives what it holds up to there, and a warning."""
    inflated = bytearray()
    rest = data
    while rest.startswith(_GZIP):
        start = len(inflated)
        try:
            after = _inflate_member(rest, inflated, _PIECE, path, max_bytes)
        except _GzipError:
            # The piece with the damage is lost, so go through the member again in small ones.
            del inflated[start:]
            with contextlib.suppress(_GzipError):
                _inflate_member(rest, inflated, _SMALL_PIECE, path, max_bytes)
            return inflated, _cut(inflated, path, "is damaged")
        if after is None:
            return inflated, _cut(inflated, path, "is cut short")
        rest = after
    return inflated, []


def _inflate_member(data: bytes, inflated: bytearray, size: int, path: str, max_bytes: int) -> bytes | None:
    """Append the first member to ``inflated``; what comes after it, ``None`` when it has no end."""
    member = igzip_lib.IgzipDecompressor(flag=igzip_lib.DECOMP_GZIP)
    piece = member.decompress(data, size)
    while True:
        inflated += piece
        if len(inflated) > max_bytes:
            raise TraceError(path, f"inflates to more than the limit of {max_bytes:,} bytes")
        if member.eof:
            return member.unused_data
        if not piece and member.needs_input:
            return None
        piece = member.decompress(b"", size)


def _cut(inflated: bytearray, path: str, how: str) -> list[str]:
    if not inflated:
        raise TraceError(path, f"is gzip that {how}: nothing could be inflated")
    return [f"the gzip data {how}: read what could be inflated"]
