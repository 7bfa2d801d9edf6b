"""A path → the raw tables of the trace in it, and the rest of its document: in pieces, or whole where it is damaged."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from syncscope.trace import source
from syncscope.trace.decode import decode
from syncscope.trace.events import Document, Event
from syncscope.trace.pieces import Pieces
from syncscope.trace.rows import Part, Strings, pair, split
from syncscope.trace.source import TooLarge, Unclear
from syncscope.trace.tables import RawTables
from syncscope.trace.workers import WorkerLost, parts

DAMAGED_SHARE = 4
"""A damaged file is read as a whole, which takes several times its size: it may be of this part of the limit."""


@dataclass
class Contents:
    """What a file holds."""

    document: Document
    """Without its events."""
    tables: RawTables
    metadata: list[Event] = field(default_factory=list)
    other_categories: set[str] = field(default_factory=set)
    warnings: list[str] = field(default_factory=list)


def read_file(path: str, max_bytes: int, workers: int) -> Contents:
    """The contents of a file. Raises :class:`.TraceError`."""
    for count in (workers, 1) if workers > 1 else (1,):
        try:
            return read_pieces(source.Text(path, max_bytes), path, count)
        except WorkerLost:
            continue
        except Unclear:
            break
    return _read_whole(path, max_bytes // DAMAGED_SHARE)


def read_pieces(text: source.Text | Iterable[bytes], path: str, workers: int = 1) -> Contents:
    """The contents of a document. Raises :class:`.TraceError`, :class:`.Unclear` and :class:`.WorkerLost`."""
    pieces, strings = Pieces(text, path), Strings()
    found = _gathered(parts(pieces, strings, workers), strings)
    found.document = pieces.document
    return found


def read_document(data: bytes | bytearray, path: str) -> Contents:
    """The contents of a document, decoded as a whole and mended where it can be. Raises :class:`.TraceError`."""
    document, warnings = decode(data, path)
    events, document.events = document.events or [], None
    strings = Strings()
    found = _gathered([split(events, strings)], strings)
    found.document = document
    found.warnings = warnings + found.warnings
    return found


def _read_whole(path: str, max_bytes: int) -> Contents:
    try:
        data, warnings = source.read(path, max_bytes)
    except TooLarge:
        share = f"more than the {max_bytes:,} bytes up to which that is mended, a part of the limit"
        raise TooLarge(path, f"is damaged, and holds {share}") from None
    found = read_document(data, path)
    found.warnings = warnings + found.warnings
    return found


def _gathered(read: Iterable[Part], strings: Strings) -> Contents:
    """All parts in one; what only all of them tell is told here."""
    tables = RawTables(strings)
    found = Contents(Document(), tables)
    halves: list[tuple[int, Event]] = []
    row, untimed, capitalised = 0, 0, False
    for part in read:
        for table, columns in part.tables.items():
            tables.add(table, columns | {"row": columns["row"] + row})
        halves += [(row + of_part, event) for of_part, event in part.halves]
        found.metadata += part.metadata
        found.other_categories |= part.other_categories
        row, untimed, capitalised = row + part.events, untimed + part.untimed, capitalised or part.capitalised
    completed, found.warnings = pair(halves, strings)
    for table, columns in completed.tables.items():
        tables.add(table, columns)
    found.other_categories |= completed.other_categories
    if capitalised:
        tables.move_annotations()
    if untimed := untimed + completed.untimed:
        plural = "s" if untimed != 1 else ""
        found.warnings.append(f"{untimed:,} event{plural} skipped: no time or an impossible one")
    return found
