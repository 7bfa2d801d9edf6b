"""Bytes → events: one typed decode of the whole document, and :mod:`.salvage` for what that cannot read."""

from __future__ import annotations

import re

import msgspec

from syncscope.trace.events import Document, Event
from syncscope.trace.salvage import salvage
from syncscope.trace.source import TraceError

_DOCUMENT = msgspec.json.Decoder(Document)
_EVENTS = msgspec.json.Decoder(list[Event])
_START = re.compile(rb"(?:\xef\xbb\xbf)?\s*")  # a byte order mark and white space


def decode(data: bytes | bytearray, path: str) -> tuple[Document, list[str]]:
    """The document and what was lost on the way, a warning each. Raises :class:`TraceError` when it is no trace."""
    start = _START.match(data)
    view = memoryview(data)[start.end() if start else 0 :]
    if bytes(view[:1]) not in (b"{", b"["):
        raise TraceError(path, "is not JSON")
    warnings: list[str] = []
    try:
        document = _decode_whole(view)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        document, warnings = _decode_damaged(view, path)
    if document.events is None:
        raise TraceError(path, "is JSON but not a trace: it has no list of traceEvents")
    if not document.events:
        raise TraceError(path, "holds no events")
    return document, warnings


def _decode_whole(view: memoryview | bytes) -> Document:
    if view[:1] == b"[":
        return Document(events=_EVENTS.decode(view))
    return _DOCUMENT.decode(view)


def _decode_damaged(view: memoryview, path: str) -> tuple[Document, list[str]]:
    text = bytes(view).decode("utf-8", "replace")
    warnings = []
    if "\ufffd" in text:
        # Bytes that are no UTF-8 are often all that is wrong, so the fast way gets another chance.
        warnings.append("bytes that are not UTF-8 were replaced")
        try:
            return _decode_whole(text.encode()), warnings
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            pass
    document, lost = salvage(text, path)
    return document, warnings + lost
