"""What was found in a trace, kept beside its columns on request (``--cache``): a second look is only a file read.

An entry (``trace.entries``) holds the results of one rank as JSON, merged as if it were the only one, and what
comparing it with others needs. It answers for the same file, called the same, and the same job of the same code.
Anything else has an entry of its own, or none.
"""

from __future__ import annotations

import functools
import hashlib
import os
from pathlib import Path

import msgspec

from syncscope import __version__
from syncscope.analysis.job import Job
from syncscope.schema.report import Report
from syncscope.trace.entries import Entry
from syncscope.trace.source import Reading

MAGIC = f"SYNCSCOPE {__version__} judged 3\n".encode()
"""Increase the number with every change of what an entry holds."""


class _Kept(msgspec.Struct, array_like=True):
    fingerprint: bytes
    """Of the trace's file."""
    asked: bytes
    results: bytes
    compared: bytes


class _OnlyReport(msgspec.Struct):
    """What is read of the results where nothing but the report is wanted."""

    report: Report


def judged_of(path: str, job: Job, shown: str | None = None) -> Judged:
    """What is kept of the trace at ``path``, called ``shown``, for a ``job``. Raises :class:`.MissingExtra`."""
    asked = msgspec.structs.replace(job, codes=frozenset(), reading=Reading(max_bytes=job.reading.max_bytes))
    return Judged(path, msgspec.json.encode((asked, sorted(job.codes), shown)))


def kept_report(path: str, job: Job) -> Report | None:
    """The report on a trace that was judged before in the same way, without loading what judges. Raises
    :class:`.MissingExtra`."""
    known = judged_of(path, job).load()
    if known is None:
        return None
    try:
        return msgspec.json.decode(known[0], type=_OnlyReport).report
    except (msgspec.MsgspecError, RecursionError):
        return None


class Judged:
    """What is kept of the trace at ``path`` and of what was ``asked`` of it. Raises :class:`.MissingExtra` without the
    extra ``cache``."""

    def __init__(self, path: str, asked: bytes) -> None:
        self._asked = hashlib.sha256(b"\0".join((_code(), os.fsencode(path), asked))).digest()
        self._entry = Entry(path, ".judged", MAGIC, self._asked)

    def load(self) -> tuple[bytes, bytes] | None:
        """The results, and what comparing needs; ``None`` where there is no valid entry."""
        body = self._entry.read()
        if body is None:
            return None
        try:
            kept = msgspec.msgpack.decode(body, type=_Kept)
        except msgspec.MsgspecError:
            return None
        same = kept.fingerprint == self._entry.fingerprint and kept.asked == self._asked
        return (kept.results, kept.compared) if same else None

    def store(self, results: bytes, compared: bytes) -> None:
        """Keep both for the next time. Does nothing where that is impossible."""
        kept = _Kept(self._entry.fingerprint, self._asked, results, compared)
        self._entry.write(lambda: msgspec.msgpack.encode(kept))


@functools.cache
def _code() -> bytes:
    """The state of our own code, so that a change of a rule is seen where the version stays the same."""
    digest = hashlib.sha256()
    for folder, folders, names in os.walk(Path(__file__).parents[1]):
        folders[:] = sorted(set(folders) - {"__pycache__", "assets"})
        for name in sorted(names):
            status = os.stat(os.path.join(folder, name))
            digest.update(os.fsencode(f"{folder} {name} {status.st_size} {status.st_mtime_ns} "))
    return digest.digest()
