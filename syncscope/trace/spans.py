"""Parts of an open file, by where they lie: whoever shares the file reads them without being sent them.

And the buffer that they, and what is sent, are read to.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from io import BufferedReader
from typing import IO, NamedTuple, cast

from syncscope.trace.source import BLOCK, Unclear

NEAR = 16
"""Times a span's size within which a seam must follow; else the events are written otherwise from there on."""

_WINDOW = 1 << 14
"""Bytes looked through at a time for a seam: a few events."""


class Span(NamedTuple):
    """Whole events, from the first's begin to the last's end, both in bytes of the file."""

    start: int
    end: int


class Buffer:
    """Where pieces are read to, each over the one before: JSON lists of events."""

    def __init__(self) -> None:
        self._bytes = bytearray(2 * BLOCK)

    def list_of(self, size: int) -> memoryview:
        """A list whose inside has ``size`` bytes, yet to be filled."""
        if len(self._bytes) < size + 2:
            self._bytes = bytearray(size + 2)
        text = memoryview(self._bytes)[: size + 2]
        text[0], text[-1] = ord("["), ord("]")
        return text

    def read(self, file: int, span: Span) -> memoryview:
        """The list of a span's events. Raises :class:`.Unclear` where it cannot be read."""
        text = self.list_of(span.end - span.start)
        try:
            read = os.preadv(file, [text[1:-1]], span.start)
        except OSError:
            raise Unclear from None
        if read < len(text) - 2:
            raise Unclear
        return text

    def receive(self, stream: IO[bytes], size: int) -> memoryview | None:
        """The list whose inside comes next on a stream, ``None`` where that ends."""
        text = self.list_of(size)
        return text if cast("BufferedReader", stream).readinto(text[1:-1]) == size else None

    def copy(self, inside: memoryview) -> memoryview:
        """The list of what stands in another place."""
        text = self.list_of(len(inside))
        text[1:-1] = inside
        return text


def spans(file: int, start: int, seam: bytes, size: int) -> Iterator[Span]:
    """Spans of somewhat over ``size`` bytes from ``start`` on, each up to a ``seam``, as long as one is near.

    The comma in the seam stands between one span and the next. Raises :class:`.Unclear`.
    """
    comma = seam.index(b",")
    while (found := _find(file, seam, start + size, start + NEAR * size)) >= 0:
        yield Span(start, found + comma)
        start = found + comma + 1


def blocks(file: int, start: int, size: int) -> Iterator[bytes]:
    """The file's bytes from ``start`` on, ``size`` at a time. Raises :class:`.Unclear`."""
    while block := _read(file, size, start):
        yield block
        start += len(block)


def _find(file: int, text: bytes, start: int, end: int) -> int:
    """Where ``text`` is first found from ``start`` on, −1 where it is not by ``end`` or so."""
    window = b""
    while start < end and (more := _read(file, _WINDOW, start)):
        window = window[len(window) - len(text) + 1 :] if len(window) >= len(text) else window
        window += more
        start += len(more)
        if (found := window.find(text)) >= 0:
            return start - len(window) + found
    return -1


def _read(file: int, size: int, start: int) -> bytes:
    try:
        return os.pread(file, size, start)
    except OSError:
        raise Unclear from None
