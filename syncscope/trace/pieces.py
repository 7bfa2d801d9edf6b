"""A document's text → pieces, each the inside of a JSON list of whole events, or a span of the file that holds it.

Where the text may be cut is guessed and not proved: what stands between two events of one block stands between two of
the next, too. A piece that decodes as a list of events proves its cut, since a cut within an event or a string leaves
a bracket or a quote open, or closes one too many; whoever decodes the pieces must refuse the document otherwise. Where
there is nothing to guess by, as at the end of the list, :func:`structure` looks at every character.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

import numpy as np

from syncscope.trace.decode import START, decode_frame
from syncscope.trace.events import Document
from syncscope.trace.source import Text, TraceError, Unclear
from syncscope.trace.spans import Span, blocks, spans

LONGEST = 256 << 20
"""Bytes of an event, and of what comes before and after the events: more is no trace."""

Piece = memoryview | Span

_LIST = re.compile(rb'"traceEvents"\s*:\s*\[')
_SEAM = re.compile(rb'\}\s*,\s*\{\s*"[^"\\]{1,100}"\s*:')
_ESCAPE = re.compile(rb"\\.", re.DOTALL)

_MARKS = np.zeros(256, dtype=bool)
_MARKS[list(b'"{}[],')] = True
_DEPTH = np.zeros(256, dtype=np.int8)
_DEPTH[list(b"{[")], _DEPTH[list(b"}]")] = 1, -1


class Pieces:
    """Iterate over the pieces first; then ``document`` is the rest of the document.

    Both raise :class:`.Unclear` for what must be read as a whole, and :class:`.TraceError` for what is too long.
    """

    def __init__(self, text: Text | Iterable[bytes], path: str) -> None:
        self._text = text if isinstance(text, Text) else None
        self._blocks = self._opened = iter(text)  # which closes the file when it is let go
        self._read = 0  # bytes
        self._path = path
        self._before = b""
        self._after = b""
        self._seam: bytes | None = None

    @property
    def file(self) -> int | None:
        """The descriptor of the file whose spans are given out, while iterating."""
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
            if self._text is not None and self._text.file is not None and self._seam is not None:
                yield from self._spans(self._text.file, self._seam, self._read - len(rest), self._text.size)
                rest, self._text = b"", None
            more = self._more(rest)
            if not more and cut < 0:
                raise Unclear
            rest = more or rest

    @property
    def document(self) -> Document:
        """The document without its events."""
        if self._before:
            return decode_frame(b"%bnull%b" % (self._before, self._after))
        if self._after.strip():
            raise Unclear
        return Document()

    def _first_events(self) -> bytes:
        """The text from the first event on."""
        text = b""
        while text := self._more(text):
            start = START.match(text)
            begin = start.end() if start else 0
            if text[begin : begin + 1] == b"[":
                return text[begin + 1 :]
            if found := _LIST.search(text, begin):
                self._before = text[begin : found.end() - 1]
                decode_frame(self._before + b"null}")  # it is the root's own list
                return text[found.end() :]
        raise Unclear

    def _spans(self, file: int, seam: bytes, start: int, size: int) -> Iterator[Span]:
        """The spans from ``start`` on; the blocks go on behind the last."""
        for span in spans(file, start, seam, size):
            yield span
            start = span.end + 1
        self._blocks = blocks(file, start, size)

    def _more(self, text: bytes) -> bytes:
        """``text`` and at least as much again, so that looking through it anew stays cheap; nothing at the end."""
        parts, size = [text], 0
        for block in self._blocks:
            parts.append(block)
            size += len(block)
            if size >= len(text):
                break
        self._read += size
        if len(text) + size > LONGEST:
            raise TraceError(self._path, f"holds more than {LONGEST:,} bytes that are no events, or one event of them")
        return b"".join(parts) if size else b""

    def _cut(self, text: bytes) -> tuple[int, int]:
        """Where the list ends, and the last comma between two events; −1 for what is not there."""
        if self._seam is not None:
            found = text.rfind(self._seam)
            if found >= 0:
                return -1, text.index(b",", found)
        end, commas = structure(text)
        if not len(commas):
            return end, -1
        cut = int(commas[-1])
        seam = _SEAM.match(text, text.rfind(b"}", 0, cut))
        self._seam = seam[0] if seam else None
        return end, cut


def structure(text: bytes) -> tuple[int, np.ndarray]:
    """Where the list ends whose inside ``text`` is (−1: beyond), and the commas between its items, ascending."""
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
