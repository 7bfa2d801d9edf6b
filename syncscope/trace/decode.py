"""Bytes → events: typed decodes of a document or a piece of its events, and :mod:`.salvage` for what they refuse."""

from __future__ import annotations

import re

import msgspec

from syncscope.trace.complete import complete_events
from syncscope.trace.events import Document, Event
from syncscope.trace.salvage import salvage, salvage_events
from syncscope.trace.source import TraceError, Unclear

_DOCUMENT = msgspec.json.Decoder(Document)
_EVENTS = msgspec.json.Decoder(list[Event])
_COMPLETE: msgspec.json.Decoder[list[Event]] = msgspec.json.Decoder(complete_events())
_REFUSED = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)
START = re.compile(rb"(?:\xef\xbb\xbf)?\s*")
"""A byte order mark and white space."""


def decode(data: bytes | bytearray, path: str) -> tuple[Document, list[str]]:
    """The document and what was lost on the way, a warning each. Raises :class:`TraceError` when it is no trace."""
    start = START.match(data)
    view = memoryview(data)[start.end() if start else 0 :]
    if bytes(view[:1]) not in (b"{", b"["):
        raise TraceError(path, "is not JSON")
    warnings: list[str] = []
    try:
        document = _decode_whole(view)
    except _REFUSED:
        document, warnings = _decode_damaged(view, path)
    if document.events is None:
        raise TraceError(path, "is JSON but not a trace: it has no list of traceEvents")
    if not document.events:
        raise TraceError(path, "holds no events")
    return document, warnings


def decode_piece(events: bytes | memoryview) -> list[Event]:
    """The events of a JSON list. Raises :class:`Unclear` for anything else than whole events, and for none."""
    found: list[Event] | None
    try:
        found = _COMPLETE.decode(events)
    except _REFUSED:
        found = _mixed(events)
    if not found:
        raise Unclear
    return found


def _mixed(events: bytes | memoryview) -> list[Event] | None:
    """Events of any kind. Bare ``NaN`` and the like is not JSON, but nothing is lost by it."""
    try:
        return _EVENTS.decode(events)
    except _REFUSED:
        pass
    try:
        return salvage_events(str(events, "utf-8"))
    except (UnicodeDecodeError, RecursionError):
        return None


def decode_frame(text: bytes) -> Document:
    """The document without its events, whose place holds ``null``. Raises :class:`Unclear` for anything else."""
    try:
        document = _DOCUMENT.decode(text)
    except _REFUSED:
        raise Unclear from None
    if document.events is not None:  # the key is there twice
        raise Unclear
    return document


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
        except _REFUSED:
            pass
    document, lost = salvage(text, path)
    return document, warnings + lost
