"""A path → the bytes of a document. Refuses what is not a regular file, and inflates gzip whatever the suffix."""

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
"""Bytes read at a time: some thousand events, whose objects fit into a processor's cache."""


class Reading(msgspec.Struct, frozen=True, kw_only=True):
    """How a trace is read."""

    max_bytes: int = MAX_BYTES
    """Bytes of the largest document, inflated. A damaged one may have a quarter of that."""
    workers: int | None = None
    """Processes that decode a large file. ``None`` means one for each core, at most four; 1 means none."""
    cache: bool = False
    """Whether to keep the tables in the user's cache folder, and to read them from there the next time."""


_GZIP = b"\x1f\x8b"
_GzipError = cast("type[Exception]", isal_zlib.error)
_INFLATED = 16 << 20
_INFLATED_NEAR_DAMAGE = 1 << 10


class Loss(str):
    """A warning that part of a file is in no table."""


class TraceError(ValueError):
    """A file that cannot be read as a trace. ``str()`` is one printable line, ``PATH: reason``."""

    def __init__(self, path: str | os.PathLike[str], reason: str) -> None:
        self.path = remote.shown(os.fspath(path))
        super().__init__(one_line(f"{self.path}: {reason}"))
        self.reason = reason


class TooLarge(TraceError):
    """A document beyond the limit."""


class PiecesFailed(Exception):
    """A document cannot be read in pieces: it is damaged, or its layout is not the assumed one.

    Reading it as a whole may still work.
    """


def one_line(text: str) -> str:
    """Replace every character that could break a line or a terminal."""
    return "".join(character if character.isprintable() else "\ufffd" for character in text)


class Blocks:
    """The bytes of a file, inflated, in blocks of at most ``size``. Iterate once.

    Raises :class:`TraceError` for what cannot be read, and :class:`PiecesFailed` for gzip that is cut short or damaged.
    """

    def __init__(self, path: str, max_bytes: int = MAX_BYTES, size: int = BLOCK) -> None:
        self._path = path
        self._max_bytes = max_bytes
        self.size = max(size, len(_GZIP))
        self.file: int | None = None
        """While iterating: a descriptor of the file, if its bytes need no inflating and can be read at any offset."""

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
        data = file.read(self.size) or b""  # None where it would wait
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
    """Every gzip member inflated. Ignores what comes after the last."""
    while data.startswith(_GZIP):
        member = igzip_lib.IgzipDecompressor(flag=igzip_lib.DECOMP_GZIP)
        while not member.eof:
            try:
                block = member.decompress(data, size)
            except _GzipError:
                raise PiecesFailed from None
            if block:
                yield block
            data = file.read(size) if member.needs_input else b""
            if member.needs_input and not data:
                raise PiecesFailed
        data = member.unused_data
        if len(data) < len(_GZIP):
            data += file.read(size)


def read(path: str, max_bytes: int = MAX_BYTES) -> tuple[bytes | bytearray, list[str]]:
    """All bytes of the file, inflated, and a warning for each loss. Raises :class:`TraceError`."""
    with _open(path, max_bytes) as file:
        try:
            data = file.read(max_bytes + 1) or b""
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
            return remote.open_file(path, max_bytes)
        except remote.RemoteError as error:
            raise TraceError(path, str(error)) from None
    try:
        status = os.stat(path)
        if stat.S_ISDIR(status.st_mode):
            os.listdir(path)  # says why, where it cannot be listed
            raise TraceError(path, "is a folder, not a trace file")
        if not stat.S_ISREG(status.st_mode):
            raise TraceError(path, "is not a regular file")
        if status.st_size > max_bytes:
            raise TooLarge(path, f"holds {status.st_size:,} bytes, more than the limit of {max_bytes:,}")
        return open(path, "rb", opener=open_at_once)
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


def open_at_once(path: str, flags: int) -> int:
    """A descriptor that never blocks: some files of the system call themselves regular, and wait for what comes."""
    return os.open(path, flags | getattr(os, "O_NONBLOCK", 0))


def inflate(data: bytes, path: str, max_bytes: int = MAX_BYTES) -> tuple[bytearray, list[str]]:
    """Every gzip member of ``data``, inflated. One that is cut short or damaged is read up to there, with a warning."""
    inflated = bytearray()
    rest = data
    while rest.startswith(_GZIP):
        start = len(inflated)
        try:
            after = _inflate_member(rest, inflated, _INFLATED, path, max_bytes)
        except _GzipError:
            # The block with the damage is lost, so inflate the member again in small ones.
            del inflated[start:]
            with contextlib.suppress(_GzipError):
                _inflate_member(rest, inflated, _INFLATED_NEAR_DAMAGE, path, max_bytes)
            return inflated, _warn_or_refuse(inflated, path, "is damaged")
        if after is None:
            return inflated, _warn_or_refuse(inflated, path, "is cut short")
        rest = after
    return inflated, []


def _inflate_member(data: bytes, inflated: bytearray, size: int, path: str, max_bytes: int) -> bytes | None:
    """Append the first member to ``inflated``. Returns what comes after it, ``None`` when the member has no end."""
    member = igzip_lib.IgzipDecompressor(flag=igzip_lib.DECOMP_GZIP)
    block = member.decompress(data, size)
    while True:
        inflated += block
        if len(inflated) > max_bytes:
            raise TooLarge(path, f"inflates to more than the limit of {max_bytes:,} bytes")
        if member.eof:
            return member.unused_data
        if not block and member.needs_input:
            return None
        block = member.decompress(b"", size)


def _warn_or_refuse(inflated: bytearray, path: str, how: str) -> list[str]:
    if not inflated:
        raise TraceError(path, f"is gzip that {how}: nothing could be inflated")
    return [Loss(f"the gzip data {how}: only a part could be inflated")]
