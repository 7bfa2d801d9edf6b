"""The traces that a path stands for: a file itself, or every chrome trace in a folder and below it."""

from __future__ import annotations

import gzip
import os
import re
import zlib
from collections.abc import Sequence
from pathlib import Path, PurePosixPath

from syncscope.trace import remote
from syncscope.trace.source import TraceError

REPORT_FILE = "report.json"
SUFFIXES = (".json", ".json.gz")
HEAD_BYTES = 64 * 1024
TRACE_KEYS = (b'"traceEvents"', b'"schemaVersion"', b'"deviceProperties"', b'"ph"')
NO_TRACE = "no trace in this folder (*.json or *.json.gz of torch.profiler)"


def find_traces(paths: Sequence[str | os.PathLike[str]]) -> list[str]:
    """The trace files that paths stand for, each once. A path may be a URL that fsspec knows, of a file or a folder.

    Raises ``TraceError`` for a folder without traces and for a URL that cannot be read, and ``ValueError`` for no path.
    """
    files: dict[str, str] = {}
    for path in [remote.on_disk(os.fspath(path)) for path in paths]:
        for file in _find_at_url(path) if remote.is_url(path) else _find_on_disk(Path(path)):
            files.setdefault(file if remote.is_url(file) else os.path.realpath(file), file)
    if not files:
        raise ValueError("no trace given")
    return list(files.values())


def _find_on_disk(path: Path) -> list[str]:
    if not path.is_dir():
        return [str(path)]
    files = [
        file
        for file in path.rglob("*")
        if _named_as_trace(file.relative_to(path).parts) and file.is_file() and _may_be_trace(file)
    ]
    if not files:
        raise TraceError(path, NO_TRACE)
    return sorted(map(str, files), key=_natural_key)


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
    traces = [file for file, head in zip(named, heads, strict=True) if head is None or _begins_as_trace(_inflate(head))]
    if not traces:
        raise TraceError(url, NO_TRACE)
    return sorted(traces, key=_natural_key)


def _named_as_trace(parts: Sequence[str]) -> bool:
    hidden = any(part.startswith(".") for part in parts)
    return bool(parts) and parts[-1].endswith(SUFFIXES) and parts[-1] != REPORT_FILE and not hidden


def _natural_key(text: str) -> list[tuple[int, str]]:
    """A sort key that puts rank 10 after rank 2."""
    return [(int(part), "") if part.isdecimal() else (-1, part) for part in re.split(r"(\d+)", text)]


def _may_be_trace(file: Path) -> bool:
    """Whether to read a file of a folder. A broken one is read, so that it is reported instead of silently skipped."""
    try:
        with gzip.open(file) if file.name.endswith(".gz") else file.open("rb") as stream:
            head = stream.read(HEAD_BYTES)
    except (OSError, EOFError, zlib.error):
        return True
    return _begins_as_trace(head)


def _begins_as_trace(head: bytes) -> bool:
    return not head.strip() or any(key in head for key in TRACE_KEYS)


def _inflate(head: bytes) -> bytes:
    """The beginning of the text in gzipped bytes, which may be cut anywhere. Returns other bytes as they are."""
    if not head.startswith(b"\x1f\x8b"):
        return head
    try:
        return zlib.decompressobj(wbits=31).decompress(head, HEAD_BYTES)
    except zlib.error:
        return b""
