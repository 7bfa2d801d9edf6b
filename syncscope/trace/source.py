"""A path becomes the bytes of a document: refuses what is not a regular file, inflates gzip whatever the suffix."""

from __future__ import annotations

import contextlib
import os
import stat
from collections.abc import Iterator
from typing import IO, cast

import msgspec
from isal import igzip_lib, isal_zlib

from syncscope.trace import remote

MAX_BYTES = 8 << 30
"""The largest document read by default, inflated: 8 GiB."""

BLOCK = 1 << 20
"""Bytes read at a time: some thousand events, whose objects stay in a processor's cache."""


class Reading(msgspec.Struct, frozen=True, kw_only=True):
    """How a trace is read."""

    max_bytes: int = MAX_BYTES
    """The largest document, inflated; a damaged one may be a quarter of it."""
    workers: int | None = None
    """Processes that take part in reading a large file; ``None``: one for each core, four at most; 1: none."""
    cache: bool = False
    """Whether the columns are kept in the user's cache folder, and taken from there."""


_GZIP = b"\x1f\x8b"
_GzipError = cast("type[Exception]", isal_zlib.error)
_PIECE = 16 << 20
_SMALL_PIECE = 1 << 10


class TraceError(ValueError):
    """A file that cannot be read as a trace. ``str()`` is one printable line, ``PATH: reason``."""

    def __init__(self, path: str | os.PathLike[str], reason: str) -> None:
        self.path = remote.shown(os.fspath(path))
        super().__init__(one_line(f"{self.path}: {reason}"))
        self.reason = reason


class TooLarge(TraceError):
    """A document beyond the limit."""


class Unclear(Exception):
    """What was read in pieces must be read as a whole: it is damaged, or not what it looked like."""


def one_line(text: str) -> str:
    """``text`` with what could break a line, or a terminal, replaced."""
    return "".join(character if character.isprintable() else "\ufffd" for character in text)


class Text:
    """A file's bytes, inflated, in blocks of at most ``size``; iterate once.

    Raises :class:`TraceError` for what cannot be read, and :class:`Unclear` for gzip that is cut short or damaged.
    """

    def __init__(self, path: str, max_bytes: int = MAX_BYTES, size: int = BLOCK) -> None:
        self._path = path
        self._max_bytes = max_bytes
        self.size = max(size, len(_GZIP))
        self.file: int | None = None
        """While iterating: the descriptor of a file that holds these very bytes, if any part of it can be read."""

    def __iter__(self) -> Iterator[bytes]:
        total = 0
        with _open(self._path, self._max_bytes) as file:
            try:
                for block in self._blocks(file):
                    total += len(block)
                    if total > self._max_bytes:
                        raise TooLarge(self._path, f"inflates to more than the limit of {self._max_bytes:,} bytes")
                    yield block
            except OSError as error:
                raise TraceError(self._path, f"cannot be read: {error.strerror or error}") from None
            finally:
                self.file = None
        if not total:
            raise TraceError(self._path, "is empty")

    def _blocks(self, file: IO[bytes] | remote.File) -> Iterator[bytes]:
        data = file.read(self.size)
        if data.startswith(_GZIP):
            return _inflated(file, data, self.size)
        if hasattr(os, "preadv") and not isinstance(file, remote.File):
            self.file = file.fileno()
        return _plain(file, data, self.size)


def _plain(file: IO[bytes] | remote.File, data: bytes, size: int) -> Iterator[bytes]:
    while data:
        yield data
        data = file.read(size)


def _inflated(file: IO[bytes] | remote.File, data: bytes, size: int) -> Iterator[bytes]:
    """Every gzip member; what comes after the last is ignored."""
    while data.startswith(_GZIP):
        member = igzip_lib.IgzipDecompressor(flag=igzip_lib.DECOMP_GZIP)
        while not member.eof:
            try:
                block = member.decompress(data, size)
            except _GzipError:
                raise Unclear from None
            if block:
                yield block
            data = file.read(size) if member.needs_input else b""
            if member.needs_input and not data:
                raise Unclear
        data = member.unused_data
        if len(data) < len(_GZIP):
            data += file.read(size)


def read(path: str, max_bytes: int = MAX_BYTES) -> tuple[bytes | bytearray, list[str]]:
    """All of the file's bytes, inflated, and what was lost on the way (a warning each). Raises :class:`TraceError`."""
    with _open(path, max_bytes) as file:
        try:
            data = file.read(max_bytes + 1)
        except OSError as error:
            raise TraceError(path, f"cannot be read: {error.strerror or error}") from None
    if len(data) > max_bytes:
        raise TooLarge(path, f"holds more than the limit of {max_bytes:,} bytes")
    if data.startswith(_GZIP):
        return inflate(data, path, max_bytes)
    return data, []


def _open(path: str, max_bytes: int) -> IO[bytes] | remote.File:
    if remote.is_url(path):
        try:
            return remote.opened(path, max_bytes)
        except remote.RemoteError as error:
            raise TraceError(path, str(error)) from None
    try:
        status = os.stat(path)
        if stat.S_ISDIR(status.st_mode):
            raise TraceError(path, "is a folder, not a trace file")
        if not stat.S_ISREG(status.st_mode):
            raise TraceError(path, "is not a regular file")
        if status.st_size > max_bytes:
            raise TooLarge(path, f"holds {status.st_size:,} bytes, more than the limit of {max_bytes:,}")
        return open(path, "rb")
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
            raise TooLarge(path, f"inflates to more than the limit of {max_bytes:,} bytes")
        if member.eof:
            return member.unused_data
        if not piece and member.needs_input:
            return None
        piece = member.decompress(b"", size)


def _cut(inflated: bytearray, path: str, how: str) -> list[str]:
    if not inflated:
        raise TraceError(path, f"is gzip that {how}: nothing could be inflated")
    return [f"the gzip data {how}: read what could be inflated"]
