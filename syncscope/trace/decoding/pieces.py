"""A document's text → pieces: lists of whole events, each to be decoded on its own.

A piece is text, or a :class:`Span` of a file: whoever shares the file's descriptor reads a span without being sent it.

Where the text may be cut is guessed, not proved. What separates two events in one block is assumed to separate two
events in the next ones too. A piece that decodes as a list of events proves its cuts: a cut inside an event or a string
leaves a bracket or a quote open, or closes one too many. So whoever decodes the pieces must refuse the document when
one does not decode. Where there is nothing to guess by, as at the end of the list, :func:`structure` looks at every
character.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator
from io import BufferedReader
from typing import IO, NamedTuple, cast

import numpy as np

from syncscope.patterns import compile_later
from syncscope.trace.decoding.decode import START, decode_frame
from syncscope.trace.decoding.events import Document
from syncscope.trace.source import BLOCK, Blocks, PiecesFailed, TraceError

LONGEST = 256 << 20
"""Bytes of an event, and of what comes before and after the events. A longer one belongs to no trace."""

NEAR = 16
"""The separator must follow within this many times a span's size. Otherwise the layout of the events has changed."""


class Span(NamedTuple):
    """Offsets in a file between which whole events lie, without the commas before and after them."""

    start: int
    end: int


Piece = memoryview | Span

ENOUGH = 1 << 16
"""Bytes in which two events are expected, to see what separates them. Looking at every character takes long."""

_LIST = compile_later(rb'"traceEvents"\s*:\s*\[')
_SEPARATOR = compile_later(rb'\}\s*,\s*\{\s*"[^"\\]{1,100}"\s*:')
_ESCAPE = compile_later(rb"\\.", re.DOTALL)
_WINDOW = 1 << 14  # bytes searched at a time for a separator: a few events

_MARKS = np.zeros(256, dtype=bool)
_MARKS[list(b'"{}[],')] = True
_DEPTH = np.zeros(256, dtype=np.int8)
_DEPTH[list(b"{[")], _DEPTH[list(b"}]")] = 1, -1


class Pieces:
    """Iterate over the pieces first; then ``document`` is the rest of the document.

    Both raise :class:`.PiecesFailed` for what must be read as a whole, and :class:`.TraceError` for what is too long.
    """

    def __init__(self, text: Blocks | Iterable[bytes], path: str) -> None:
        self._text = text if isinstance(text, Blocks) else None
        self._blocks = self._opened = iter(text)  # the file stays open as long as this iterator exists
        self._read = 0  # bytes
        self._path = path
        self._before = b""
        self._after = b""
        self._separator: bytes | None = None

    @property
    def file(self) -> int | None:
        """The descriptor of the file that spans refer to, while iterating."""
        return None if self._text is None else self._text.file

    def __iter__(self) -> Iterator[Piece]:
        rest = self._first_events()
        while True:
            end, cut = self._cut(rest)
            if end >= 0:
                yield memoryview(rest)[:end]
                self._after = rest[end + 1 :]
                while more := self._more(self._after):
                    self._after = more
                return
            if cut >= 0:
                yield memoryview(rest)[:cut]
            rest = rest[cut + 1 :]
            if self._text is not None and self._text.file is not None and self._separator is not None:
                yield from self._spans(self._text.file, self._separator, self._read - len(rest), self._text.size)
                rest, self._text = b"", None
            more = self._more(rest)
            if not more and cut < 0:
                raise PiecesFailed
            rest = more or rest

    @property
    def document(self) -> Document:
        """The document without its events."""
        if self._before:
            return decode_frame(b"%bnull%b" % (self._before, self._after))
        if self._after.strip():
            raise PiecesFailed
        return Document()

    def _first_events(self) -> bytes:
        """The text from the first event on."""
        text = b""
        while text := self._more(text):
            start = START.match(text)
            begin = start.end() if start else 0
            if text[begin : begin + 1] == b"[":
                return text[begin + 1 :]
            if events := _LIST.search(text, begin):
                self._before = text[begin : events.end() - 1]
                decode_frame(self._before + b"null}")  # proves that it is the root's own list
                return text[events.end() :]
        raise PiecesFailed

    def _spans(self, file: int, separator: bytes, start: int, size: int) -> Iterator[Span]:
        """The spans from ``start`` on. Afterwards the blocks continue after the last span."""
        for span in spans(file, start, separator, size):
            yield span
            start = span.end + 1
        self._blocks = blocks(file, start, size)

    def _more(self, text: bytes) -> bytes:
        """``text`` with at least as much of the text that follows, so that searching it from the start is cheap. Empty
        at the end."""
        parts, size = [text], 0
        for block in self._blocks:
            parts.append(block)
            size += len(block)
            if size >= len(text):
                break
        self._read += size
        if len(text) + size > LONGEST:
            raise TraceError(self._path, f"has one event, or text around the events, of more than {LONGEST:,} bytes")
        return b"".join(parts) if size else b""

    def _cut(self, text: bytes) -> tuple[int, int]:
        """Where the list ends, and the last comma between two events; −1 for what is not there."""
        if self._separator is None and len(text) > ENOUGH:
            end, commas = structure(text[:ENOUGH])
            self._separator = _separator(text, commas) if end < 0 else None
        if self._separator is not None:
            last = text.rfind(self._separator)
            if last >= 0:
                return -1, text.index(b",", last)
        end, commas = structure(text)
        if not len(commas):
            return end, -1
        self._separator = _separator(text, commas)
        return end, int(commas[-1])


def _separator(text: bytes, commas: np.ndarray) -> bytes | None:
    """What stands around the last of ``commas``, which separate events."""
    found = _SEPARATOR.match(text, text.rfind(b"}", 0, int(commas[-1]))) if len(commas) else None
    return found[0] if found else None


def structure(text: bytes) -> tuple[int, np.ndarray]:
    """Find the end of the list whose inside ``text`` begins with (−1: not in ``text``), and the commas between its
    items, in ascending order."""
    if b"\\" in text:
        text = _ESCAPE.sub(b"__", text)
    characters = np.frombuffer(text, dtype=np.uint8)
    marks = np.flatnonzero(_MARKS[characters])
    kinds = characters[marks]
    quotes = kinds == ord('"')
    outside = np.cumsum(quotes, dtype=np.int32) & 1 == 0
    depths = np.cumsum(np.where(outside, _DEPTH[kinds], 0), dtype=np.int32)
    closed = np.flatnonzero(depths < 0)
    commas = outside & (kinds == ord(",")) & (depths == 0)
    if len(closed):
        commas[closed[0] :] = False
    return int(marks[closed[0]]) if len(closed) else -1, marks[commas]


# ------------------------------------------------------------------------------------------------ parts of a file


class Buffer:
    """Memory for one piece at a time, as a JSON list. Each piece overwrites the one before."""

    def __init__(self) -> None:
        self._bytes = bytearray(2 * BLOCK)

    def read(self, file: int, span: Span) -> memoryview:
        """The list of a span's events. Raises :class:`.PiecesFailed` where it cannot be read."""
        text = self._list(span.end - span.start)
        try:
            read = os.preadv(file, [text[1:-1]], span.start)
        except OSError:
            raise PiecesFailed from None
        if read < len(text) - 2:
            raise PiecesFailed
        return text

    def receive(self, stream: IO[bytes], size: int) -> memoryview | None:
        """The list whose inside comes next on a stream, ``None`` where the stream ends."""
        text = self._list(size)
        return text if cast("BufferedReader", stream).readinto(text[1:-1]) == size else None

    def copy(self, inside: memoryview) -> memoryview:
        """The list with this inside."""
        text = self._list(len(inside))
        text[1:-1] = inside
        return text

    def _list(self, size: int) -> memoryview:
        """A list whose inside has ``size`` bytes, yet to be filled."""
        if len(self._bytes) < size + 2:
            self._bytes = bytearray(size + 2)
        text = memoryview(self._bytes)[: size + 2]
        text[0], text[-1] = ord("["), ord("]")
        return text


def spans(file: int, start: int, separator: bytes, size: int) -> Iterator[Span]:
    """Spans of a little over ``size`` bytes, from ``start`` on, each up to a separator, as long as one is near.

    The separator's comma stands between one span and the next. Raises :class:`.PiecesFailed`.
    """
    comma = separator.index(b",")
    while (end := _search(file, separator, start + size, start + NEAR * size)) >= 0:
        yield Span(start, end + comma)
        start = end + comma + 1


def blocks(file: int, start: int, size: int) -> Iterator[bytes]:
    """The file's bytes from ``start`` on, ``size`` at a time. Raises :class:`.PiecesFailed`."""
    while block := _read(file, size, start):
        yield block
        start += len(block)


def _search(file: int, text: bytes, start: int, end: int) -> int:
    """The first offset of ``text`` from ``start`` on, −1 where there is none up to about ``end``."""
    window = b""
    while start < end and (more := _read(file, _WINDOW, start)):
        window = window[len(window) - len(text) + 1 :] if len(window) >= len(text) else window
        window += more
        start += len(more)
        if (offset := window.find(text)) >= 0:
            return start - len(window) + offset
    return -1


def _read(file: int, size: int, start: int) -> bytes:
    try:
        return os.pread(file, size, start)
    except OSError:
        raise PiecesFailed from None
