"""Saved JSON reports, told from traces and read."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from syncscope.cli.errors import UNREADABLE, CommandError

if TYPE_CHECKING:
    from syncscope.schema.report import Report

HEAD_BYTES = 4096
REPORT_KEY = b'"schema_version"'


def is_report(path: Path) -> bool:
    """Whether a file is a report of ours; one that is neither is left to the trace reader to refuse."""
    if not path.is_file():
        return False
    try:
        with path.open("rb") as stream:
            return REPORT_KEY in stream.read(HEAD_BYTES)
    except OSError:
        return False


def read_report(path: Path) -> Report:
    """The report in a file. Raises ``CommandError`` for one that is none, or newer than this program."""
    import msgspec

    from syncscope.schema.report import SCHEMA_VERSION, Report

    try:
        data = path.read_bytes()
        version = msgspec.json.decode(data, type=dict[str, msgspec.Raw])["schema_version"]
        if msgspec.json.decode(version, type=int) > SCHEMA_VERSION:
            known = f"schema {bytes(version).decode()}, this one knows {SCHEMA_VERSION}"
            raise CommandError(f"{path}: written by a newer syncscope ({known})", UNREADABLE)
        return Report.from_json(data)
    except (msgspec.DecodeError, KeyError) as error:
        raise CommandError(f"{path}: not a report: {error}", UNREADABLE) from None
    except OSError as error:
        raise CommandError(f"{path}: {error.strerror or error}", UNREADABLE) from None
