"""``syncscope report --perfetto``: write the traces of a report with its findings as tracks."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from syncscope.cli.errors import UNREADABLE, USAGE, CommandError
from syncscope.cli.output import STDOUT, claim, say_written, write

if TYPE_CHECKING:
    from syncscope.schema.report import Report

LEVEL = 2
"""isal's middle level of compression, as the collector uses."""

Destination = tuple[str, Path]
"""The source of a trace, a path or a URL, and the file it is written to."""


def destinations(path: Path | None, traces: Mapping[str, str], other: Iterable[str | Path]) -> dict[str, Destination]:
    """Source and destination of each trace, by its path in the report; empty where ``path`` is ``None``.

    One trace goes to ``path``. Several go to the folder ``path``, each to a file with its own name. Raises
    ``CommandError`` for a destination that cannot be written, or that is a trace or one of ``other``.
    """
    if path is None:
        return {}
    if path == STDOUT:
        raise CommandError("--perfetto cannot write to standard output: name a file", USAGE)
    taken = {os.path.realpath(file): "would overwrite its input" for file in traces.values()}
    taken |= {os.path.realpath(file): "is named twice" for file in other}
    if len(traces) > 1:
        _make_folder(path)
    places = [path] if len(traces) == 1 else [path / _flat(name, list(traces)) for name in traces]
    for place in places:
        claim(place, taken)
    return {name: (file, place) for (name, file), place in zip(traces.items(), places, strict=True)}


def _make_folder(path: Path) -> None:
    try:
        path.mkdir(exist_ok=True)
    except OSError as error:
        raise CommandError(f"{path}: several traces need a folder: {error.strerror or error}", USAGE) from None


def _flat(name: str, names: Sequence[str]) -> str:
    """The trace's file name. Where several traces have the same name, their folders become part of it."""
    own = os.path.basename(name)
    if sum(os.path.basename(other) == own for other in names) == 1:
        return own
    common = os.path.commonpath([os.path.abspath(other) for other in names])
    return re.sub(r"[\\/]", "-", os.path.relpath(name, common))


def annotate(report: Report, written: Mapping[str, Destination], max_bytes: int) -> None:
    """Write the report's traces with their findings. Raises ``TraceError``, ``CommandError``."""
    from syncscope.analysis.analyze import annotated

    done: set[str] = set()
    for number, info in enumerate(report.traces if written else ()):
        if info.path in done:  # another rank of a file that holds several: the tracks are of the first
            continue
        done.add(info.path)
        file, target = written[info.path]
        pieces = annotated(file, [finding for finding in report.findings if finding.trace == number], max_bytes)
        write(target, _gzipped(pieces) if target.suffix == ".gz" else pieces)
        say_written(target)


def by_name(files: Iterable[str]) -> dict[str, str]:
    """Traces by their path in the report."""
    from syncscope.trace.remote import shown

    return {shown(file).encode(errors="replace").decode(): file for file in files}


def traces_beside(report: Report, folder: Path) -> dict[str, str]:
    """The traces of a saved report, by their path in it. Only file names are taken from it: they must be in ``folder``.

    Raises ``CommandError`` where one is missing.
    """
    files = {info.path: folder / Path(info.path).name for info in report.traces}
    for file in files.values():
        if not os.path.isfile(file):  # unlike Path.is_file, it takes any name
            raise CommandError(f"{file}: missing: the traces must be in the folder of the report", UNREADABLE)
    return {name: str(file) for name, file in files.items()}


def _gzipped(pieces: Iterable[bytes | memoryview]) -> Iterator[bytes]:
    from isal import isal_zlib

    packer = isal_zlib.compressobj(LEVEL, isal_zlib.DEFLATED, 16 + isal_zlib.MAX_WBITS)
    for piece in pieces:
        yield packer.compress(piece)
    yield packer.flush()
