"""A file → its :class:`Trace`. Reads it in pieces; one that is damaged it reads as a whole, and repairs what it can."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable

from syncscope.trace import remote, source
from syncscope.trace.decoding.columns import Part, Strings, pair, split
from syncscope.trace.decoding.decode import decode
from syncscope.trace.decoding.events import Document, Event
from syncscope.trace.decoding.pieces import Pieces
from syncscope.trace.memory import LARGE, give_back_freed
from syncscope.trace.model import Trace
from syncscope.trace.source import MAX_BYTES, Loss, PiecesFailed, TooLarge
from syncscope.trace.tables.build import Contents, build_ranks, build_trace
from syncscope.trace.tables.frames import RawTables
from syncscope.trace.workers import WorkerLost, decode_pieces, default_workers

DAMAGED_SHARE = 4
"""Reading a damaged file as a whole takes several times its size in memory, so the limit is divided by this."""


def load(
    path: str | os.PathLike[str], *, max_bytes: int = MAX_BYTES, workers: int | None = None, cache: bool = False
) -> Trace:
    """Read a chrome trace of ``torch.profiler`` or of our own collector, gzipped or not, whatever its suffix.

    ``path`` may be a URL that fsspec knows, with the extra ``remote``. ``max_bytes`` limits the inflated document; a
    damaged one may have a quarter of it. Beyond about 16 MB, ``workers`` processes decode the file: by default one for
    each core, at most four; 1 means none. With ``cache`` (and the extra of that name) the tables are kept in the user's
    cache folder, and read from there the next time. ``Trace.warnings`` says what was lost.

    Raises :class:`TraceError` when the file cannot be read, is no trace, or holds nothing of a device, and
    :class:`.MissingExtra`, an ``ImportError``, when the extra ``cache`` is not installed.
    """
    name = remote.on_disk(os.fspath(path))
    if not cache:
        return _read(name, max_bytes, workers)[0]
    from syncscope.trace.cache import CacheEntry

    entry = CacheEntry(name)
    trace = entry.load(remote.shown(name))
    if trace is None:
        trace = _read(name, max_bytes, workers)[0]
        entry.store(trace)
    return trace


def load_ranks(
    path: str | os.PathLike[str], *, max_bytes: int = MAX_BYTES, workers: int | None = None, cache: bool = False
) -> tuple[Trace, ...]:
    """As :func:`load`, of a file into which the traces of several ranks were merged that of each, where it tells them
    apart; the one that ``load`` returns comes first."""
    if cache:
        first = load(path, max_bytes=max_bytes, workers=workers, cache=True)
        if first.ranks_in_file == 1:
            return (first,)
    return _read(remote.on_disk(os.fspath(path)), max_bytes, workers, build_ranks)


def load_rank(
    path: str | os.PathLike[str], rank: int | None, *, max_bytes: int = MAX_BYTES, workers: int | None = None,
    cache: bool = False,
) -> Trace:  # fmt: skip
    """As :func:`load_ranks`, the one of ``rank``; what ``load`` returns where the file has none of that."""
    traces = load_ranks(path, max_bytes=max_bytes, workers=workers, cache=cache)
    return next((one for one in traces if one.rank == rank), traces[0])


def _build_one(contents: Contents, path: str) -> tuple[Trace]:
    return (build_trace(contents, path),)


def _read(
    name: str, max_bytes: int, workers: int | None, build: Callable[[Contents, str], tuple[Trace, ...]] = _build_one
) -> tuple[Trace, ...]:
    contents = read_file(name, max_bytes, default_workers() if workers is None else workers)
    traces = build(contents, remote.shown(name))
    del contents
    if sum(len(rows) for trace in traces for rows in trace.rows.values()) >= LARGE:
        give_back_freed()
    return traces


def read_bytes(data: bytes | bytearray, path: str) -> Trace:
    """The trace in the bytes of its JSON; ``path`` names it. Raises :class:`TraceError` as :func:`load` does."""
    return build_trace(read_document(data, path), path)


def read_file(path: str, max_bytes: int, workers: int) -> Contents:
    """The contents of a file. Raises :class:`.TraceError`."""
    for count in (workers, 1) if workers > 1 else (1,):
        try:
            return read_pieces(source.Blocks(path, max_bytes), path, count)
        except WorkerLost:
            continue
        except PiecesFailed:
            break
    return _read_whole(path, max_bytes // DAMAGED_SHARE)


def read_pieces(text: source.Blocks | Iterable[bytes], path: str, workers: int = 1) -> Contents:
    """The contents of a document. Raises :class:`.TraceError`, :class:`.PiecesFailed` and :class:`.WorkerLost`."""
    pieces, strings = Pieces(text, path), Strings()
    contents = _join(decode_pieces(pieces, strings, workers), strings)
    contents.document = pieces.document
    return contents


def read_document(data: bytes | bytearray, path: str) -> Contents:
    """The contents of a document, decoded as a whole and repaired where possible. Raises :class:`.TraceError`."""
    document, warnings = decode(data, path)
    events, document.events = document.events or [], None
    strings = Strings()
    contents = _join([split(events, strings)], strings)
    contents.document = document
    contents.warnings = warnings + contents.warnings
    return contents


def _read_whole(path: str, max_bytes: int) -> Contents:
    try:
        data, warnings = source.read(path, max_bytes)
    except TooLarge:
        limit = f"more than {max_bytes:,} bytes, the limit for a damaged file"
        raise TooLarge(path, f"is damaged, and holds {limit}") from None
    contents = read_document(data, path)
    contents.warnings = warnings + contents.warnings
    return contents


def _join(parts: Iterable[Part], strings: Strings) -> Contents:
    """Join the parts of a document. Pairs the begin and end events, which may lie in different parts."""
    tables = RawTables(strings)
    contents = Contents(Document(), tables)
    halves: list[tuple[int, Event]] = []
    row, untimed, capitalised = 0, 0, False
    for part in parts:
        for table, columns in part.tables.items():
            tables.add(table, columns | {"row": columns["row"] + row})
        halves += [(row + row_in_part, event) for row_in_part, event in part.halves]
        contents.metadata += part.metadata
        contents.other_categories |= part.other_categories
        row, untimed, capitalised = row + part.events, untimed + part.untimed, capitalised or part.capitalised
    completed, contents.warnings = pair(halves, strings)
    for table, columns in completed.tables.items():
        tables.add(table, columns)
    contents.other_categories |= completed.other_categories
    if capitalised:
        tables.move_annotations()
    if untimed := untimed + completed.untimed:
        plural = "s" if untimed != 1 else ""
        contents.warnings.append(Loss(f"{untimed:,} event{plural} skipped: no time or an impossible one"))
    return contents
