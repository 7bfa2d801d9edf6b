"""The traces that a path stands for: a file itself, or every chrome trace in a folder and below it.

A file of a folder is left out only when it is certainly no trace: by its suffix, because its name is hidden or that of
our own report, or because it is whole and valid JSON of something else. Whatever else has a trace's suffix is read, so
that a rank that is damaged, or a pointer to a file that was not downloaded, is reported instead of silently skipped.
"""

from __future__ import annotations

import gzip
import json
import os
import re
import zlib
from collections.abc import Callable, Sequence
from functools import partial
from io import BytesIO
from pathlib import Path, PurePosixPath
from typing import Any

import msgspec

from syncscope.patterns import compile_later
from syncscope.trace import remote
from syncscope.trace.source import TraceError, open_at_once

REPORT_FILE = "report.json"
SUFFIXES = (".json", ".json.gz")
HEAD_BYTES = 64 * 1024
MOST_BYTES = 64 << 20
"""Bytes that are read, and that they may inflate to, to see that a file is JSON of something else."""

MOST_LENIENT = 1 << 20
"""Bytes of JSON that may hold ``NaN``, which other programs write into their configurations and summaries."""

ROOT_KEYS = frozenset({"traceEvents", "schemaVersion", "deviceProperties"})
TRACE_KEYS = (b'"traceEvents"', b'"schemaVersion"', b'"deviceProperties"', b'"ph"')
_ROOT_KEY = compile_later(rb'"(?:traceEvents|schemaVersion|deviceProperties)"\s*:')
_ROOT = msgspec.json.Decoder(dict[str, msgspec.Raw] | list[msgspec.Raw] | str | float | bool | None)
GZIP = b"\x1f\x8b"
BOM = b"\xef\xbb\xbf"
JSON_STARTS = b'{["-0123456789tfn'
NO_TRACE = "no trace in this folder (*.json or *.json.gz of torch.profiler)"


def find_traces(paths: Sequence[str | os.PathLike[str]]) -> list[str]:
    """Find the trace files at some paths, each once. A path may be a URL that fsspec knows, of a file or a folder.

    Raises ``TraceError`` for a folder without traces, a URL that cannot be read and an empty path, and ``ValueError``
    for no path.
    """
    files: dict[str, str] = {}
    for path in [remote.on_disk(os.fspath(path)) for path in paths]:
        if not path:  # of a variable that is not set; as a path, it would be the current folder
            raise TraceError('""', "is an empty path")
        for file in _find_at_url(path) if remote.is_url(path) else _find_on_disk(Path(path)):
            files.setdefault(file if remote.is_url(file) else os.path.realpath(file), file)
    if not files:
        raise ValueError("no trace given")
    return list(files.values())


def _find_on_disk(path: Path) -> list[str]:
    if not os.path.isdir(path):  # unlike Path.is_dir, it takes any name
        return [str(path)]
    found, closed = _walk(path)
    named = [file for file in found if _named_as_trace(file.relative_to(path).parts)]
    files = [*closed, *(file for file in named if os.path.lexists(file) and _may_be_trace(file))]
    if not files:
        raise TraceError(path, NO_TRACE)
    return sorted(map(str, files), key=_natural_key)


def _walk(folder: Path) -> tuple[list[Path], list[Path]]:
    """The files in a folder and below it, and the folders that cannot be listed: they may hold ranks.

    A folder that goes away meanwhile has no files.
    """
    files: list[Path] = []
    closed: list[Path] = []

    def on_error(error: OSError) -> None:
        if not isinstance(error, (FileNotFoundError, NotADirectoryError, ProcessLookupError)):
            closed.append(Path(error.filename))

    for at, folders, names in os.walk(folder, onerror=on_error):
        folders[:] = [name for name in folders if not name.startswith(".")]
        files += (Path(at, name) for name in names)
    return files, closed


def _find_at_url(url: str) -> list[str]:
    try:
        files = remote.list_folder(url)
        if files is None:
            return [url]
        base = len(url.rstrip("/"))
        named = [file for file in files if _named_as_trace(PurePosixPath(file[base:].lstrip("/")).parts)]
        heads = remote.read_heads(url, named, HEAD_BYTES)
    except remote.RemoteError as error:
        raise TraceError(url, str(error)) from None

    def whole(file: str) -> bytes | None:
        try:
            return remote.read_heads(url, [file], MOST_BYTES)[0]
        except remote.RemoteError:
            return None

    traces = [
        file
        for file, head in zip(named, heads, strict=True)
        if not _is_no_trace(PurePosixPath(file).name, head, partial(whole, file))
    ]
    if not traces:
        raise TraceError(url, NO_TRACE)
    return sorted(traces, key=_natural_key)


def _named_as_trace(parts: Sequence[str]) -> bool:
    hidden = any(part.startswith(".") for part in parts)
    return bool(parts) and parts[-1].lower().endswith(SUFFIXES) and not hidden


def _natural_key(text: str) -> list[tuple[int, str]]:
    """A sort key that puts rank 10 after rank 2."""
    return [(int(part), "") if part.isdecimal() else (-1, part) for part in re.split(r"(\d+)", text)]


def _may_be_trace(file: Path) -> bool:
    """Whether to read a file of a folder. What cannot be looked into has to be: a pipe, or a link to a file that is not
    there, the pointer of one that was not downloaded."""
    if not os.path.isfile(file):
        return True

    def read(size: int) -> bytes | None:
        try:
            with open(file, "rb", opener=open_at_once) as stream:
                return stream.read(size)
        except OSError:
            return None

    return not _is_no_trace(file.name, read(HEAD_BYTES), lambda: read(MOST_BYTES))


def _is_no_trace(name: str, head: bytes | None, read_more: Callable[[], bytes | None]) -> bool:
    """Whether a file has the name of our report and does not begin as a trace, or is whole and valid JSON without a
    trace's keys. ``head`` are its first ``HEAD_BYTES``, ``None`` where it cannot be read; ``read_more`` reads the first
    ``MOST_BYTES``."""
    if name == REPORT_FILE and _ROOT_KEY.search(_inflate(head or b"")) is None:
        return True
    if head is None or not _begins_as_other_json(_inflate(head)):
        return False
    data = head if len(head) < HEAD_BYTES else read_more()
    if data is None or len(data) >= MOST_BYTES:
        return False
    return _is_other_json(data)


def _begins_as_other_json(text: bytes) -> bool:
    start = text.removeprefix(BOM).lstrip()[:1]
    return start in JSON_STARTS and start != b"" and not any(key in text for key in TRACE_KEYS)


def _is_other_json(data: bytes) -> bool:
    """Whether bytes, gzipped or not, are a document of JSON that is no trace."""
    try:
        text = gzip.GzipFile(fileobj=BytesIO(data)).read(MOST_BYTES) if data.startswith(GZIP) else data
        text = text.removeprefix(BOM)
        root = _decode(text) if len(text) < MOST_BYTES else None
    except (OSError, EOFError, zlib.error, ValueError, RecursionError, msgspec.DecodeError):
        return False
    if isinstance(root, dict):
        return not ROOT_KEYS & root.keys()
    return len(text) < MOST_BYTES and b'"ph"' not in text


def _decode(text: bytes) -> Any:
    try:
        return _ROOT.decode(text)
    except msgspec.DecodeError:
        if len(text) > MOST_LENIENT:
            raise
        return json.loads(text)


def _inflate(head: bytes) -> bytes:
    """The beginning of the text in gzipped bytes, which may be cut anywhere. Returns other bytes as they are."""
    if not head.startswith(GZIP):
        return head
    try:
        return zlib.decompressobj(wbits=31).decompress(head, HEAD_BYTES)
    except zlib.error:
        return b""
