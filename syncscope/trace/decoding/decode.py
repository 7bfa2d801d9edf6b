"""Bytes → events, of a document or of a piece of one. :mod:`.salvage` reads what the typed decode refuses."""

from __future__ import annotations

import msgspec

from syncscope.patterns import compile_later
from syncscope.trace.decoding.events import Document, Event, complete_events
from syncscope.trace.source import PiecesFailed, TraceError

_DOCUMENT = msgspec.json.Decoder(Document)
_EVENTS = msgspec.json.Decoder(list[Event])
_COMPLETE: msgspec.json.Decoder[list[Event]] = msgspec.json.Decoder(complete_events())
_REFUSED = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)
START = compile_later(rb"(?:\xef\xbb\xbf)?\s*")
"""A byte order mark and white space."""
REPORT_KEY, SOON = b'"schema_version"', 100
"""A saved report begins with this key, within so many bytes."""


def decode(data: bytes | bytearray, path: str) -> tuple[Document, list[str]]:
    """The document, and a warning for each loss. Raises :class:`TraceError` when it is no trace."""
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
        raise TraceError(path, f"is JSON but not a trace: {_name_other(view)}")
    if not document.events and not _counted_a_run(document.syncscope):
        raise TraceError(path, "holds no events")
    return document, warnings


def _name_other(view: memoryview) -> str:
    """What else a document is that is no trace."""
    if bytes(view[:SOON]).find(REPORT_KEY) >= 0:
        return "it is a saved report, so give it to `syncscope report`"
    return "it has no list of traceEvents"


def _counted_a_run(recording: object) -> bool:
    """Whether our own key holds what was counted over a run, which needs no events."""
    return isinstance(recording, dict) and recording.get("run") is not None


def decode_piece(events: bytes | memoryview) -> list[Event]:
    """The events of a JSON list. Raises :class:`PiecesFailed` for an empty list, and for anything but whole events."""
    decoded: list[Event] | None
    try:
        decoded = _COMPLETE.decode(events)
    except _REFUSED:
        decoded = _decode_mixed(events)
    if not decoded:
        raise PiecesFailed
    return decoded


def _decode_mixed(events: bytes | memoryview) -> list[Event] | None:
    """Events of any kind, ``None`` where one is lost. A bare ``NaN`` is not JSON, but no event is lost by it."""
    try:
        return _EVENTS.decode(events)
    except _REFUSED:
        pass
    from syncscope.trace.decoding.salvage import salvage_events  # few traces need it

    try:
        return salvage_events(str(events, "utf-8"))
    except (UnicodeDecodeError, RecursionError):
        return None


def decode_frame(text: bytes) -> Document:
    """A document that has ``null`` in place of its events. Raises :class:`PiecesFailed` for anything else."""
    try:
        document = _DOCUMENT.decode(text)
    except _REFUSED:
        raise PiecesFailed from None
    if document.events is not None:  # the key is there twice
        raise PiecesFailed
    return document


def _decode_whole(view: memoryview | bytes) -> Document:
    if view[:1] == b"[":
        return Document(events=_EVENTS.decode(view))
    return _DOCUMENT.decode(view)


def _decode_damaged(view: memoryview, path: str) -> tuple[Document, list[str]]:
    from syncscope.trace.decoding.salvage import salvage  # few traces need it

    text = bytes(view).decode("utf-8", "replace")
    warnings = []
    if "\ufffd" in text:
        # Often nothing else is wrong, so try the fast way again.
        warnings.append("bytes that are not UTF-8 were replaced")
        try:
            return _decode_whole(text.encode()), warnings
        except _REFUSED:
            pass
    document, lost = salvage(text, path)
    return document, warnings + lost
