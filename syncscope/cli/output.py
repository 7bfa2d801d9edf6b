"""``--output [FORMAT=]PATH``: checked before any work, written whole or not at all."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from syncscope.cli.errors import USAGE, CommandError

if TYPE_CHECKING:
    from syncscope.findings import Report
    from syncscope.timeline.lanes import Lanes


@dataclass(frozen=True)
class Target:
    """One file to write."""

    format: str
    path: Path


def _text(report: Report, lanes: Sequence[Lanes]) -> str:
    from syncscope.report.text import to_text

    return to_text(report)


def _json(report: Report, lanes: Sequence[Lanes]) -> str:
    return report.to_json() + "\n"


def _html(report: Report, lanes: Sequence[Lanes]) -> str:
    from syncscope.report.html import render

    return render(report, lanes)


RENDERERS: dict[str, Callable[[Report, Sequence[Lanes]], str]] = {"text": _text, "json": _json, "html": _html}
ENDINGS = {".txt": "text", ".json": "json", ".html": "html", ".htm": "html"}
PICTURED = frozenset({"html"})
"""Formats that show the timeline."""


def targets(values: Iterable[str] | None, inputs: Iterable[Path]) -> list[Target]:
    """The files that ``--output`` names. Raises ``CommandError`` for one that cannot or must not be written."""
    taken = {os.path.realpath(path): "would overwrite its input" for path in inputs}
    found = []
    for value in values or ():
        target = _parsed(value)
        place = os.path.realpath(target.path)
        reason = taken.get(place)
        if target.path.is_dir():
            reason = "is a folder"
        elif not os.path.isdir(os.path.dirname(place)):
            reason = "its folder does not exist"
        if reason:
            raise CommandError(f"{target.path}: {reason}", USAGE)
        taken[place] = "is named twice"
        found.append(target)
    return found


def _parsed(value: str) -> Target:
    prefix, equals, rest = value.partition("=")
    if equals and prefix in RENDERERS and rest:
        return Target(prefix, Path(rest))
    ending = Path(value).suffix.lower()
    if ending not in ENDINGS:
        known = ", ".join(ENDINGS)
        names = ", ".join(RENDERERS)
        raise CommandError(f"{value}: unknown kind of output: end it in {known} or write {names}= before it", USAGE)
    return Target(ENDINGS[ending], Path(value))


def needs_picture(wanted: Iterable[Target]) -> bool:
    return any(target.format in PICTURED for target in wanted)


def write_all(wanted: Iterable[Target], report: Report, lanes: Sequence[Lanes]) -> None:
    """Render and write every target. Raises ``CommandError`` when the system refuses."""
    for target in wanted:
        data = RENDERERS[target.format](report, lanes).encode("utf-8", errors="replace")
        write(target.path, data)


def write(path: Path, data: bytes) -> None:
    """Write a file. Raises ``CommandError`` when the system refuses."""
    try:
        _write(path, data)
    except OSError as error:
        raise CommandError(f"{path}: {error.strerror or error}", USAGE) from None


def _write(path: Path, data: bytes) -> None:
    """Replace a regular file at once, so that nobody reads half of it; a pipe or device is written to."""
    place = os.path.realpath(path)
    if os.path.exists(place) and not os.path.isfile(place):
        Path(place).write_bytes(data)
        return
    handle, temporary = tempfile.mkstemp(dir=os.path.dirname(place), prefix=f".{os.path.basename(place)}.")
    try:
        with os.fdopen(handle, "wb") as stream:
            stream.write(data)
        os.chmod(temporary, _mode(place))
        os.replace(temporary, place)
    except BaseException:
        os.unlink(temporary)
        raise


def _mode(place: str) -> int:
    """Permissions of the file that is there, else those a new file gets."""
    if os.path.exists(place):
        return os.stat(place).st_mode & 0o7777
    umask = os.umask(0)
    os.umask(umask)
    return 0o666 & ~umask
