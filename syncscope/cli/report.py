"""``syncscope report``."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from syncscope.cli.errors import UNREADABLE, CommandError
from syncscope.cli.options import Config, Output

if TYPE_CHECKING:
    from syncscope.findings import Report
    from syncscope.timeline.lanes import Lanes

HEAD_BYTES = 4096
REPORT_KEY = b'"schema_version"'


def report(
    source: Annotated[
        Path,
        typer.Argument(
            metavar="REPORT.json|TRACE", help="A saved report, a trace or a folder of traces.", show_default=False
        ),
    ],
    output: Output,
    config: Config = None,
) -> None:
    """Write the HTML report, from a trace or from a saved JSON report.

    From a saved report the timeline is drawn from the traces beside it, where they are still there.

    [bold]Examples[/bold]

      syncscope report trace.json.gz -o report.html
      syncscope report out/report.json -o report.html

    [bold]Exit status[/bold]: 0; 2 wrong usage or configuration; 3 a file that cannot be read.
    """
    from syncscope.cli.output import Content, deliver, needs_picture, targets
    from syncscope.cli.study import study
    from syncscope.policy import load_policy

    if not _is_report(source):
        found, lanes, wanted = study([source], output, load_policy(Path.cwd(), config))
        deliver(wanted, Content(found, lanes))
        return
    wanted = targets(output, [source])
    saved = _read(source)
    deliver(wanted, Content(saved, _pictures(saved, source.parent) if needs_picture(wanted) else ()))


def _pictures(saved: Report, folder: Path) -> Sequence[Lanes]:
    from syncscope.analysis import lanes_beside

    return lanes_beside(saved, folder)


def _is_report(path: Path) -> bool:
    """Whether a file is a report of ours; one that is neither is left to the trace reader to refuse."""
    if not path.is_file():
        return False
    try:
        with path.open("rb") as stream:
            return REPORT_KEY in stream.read(HEAD_BYTES)
    except OSError:
        return False


def _read(path: Path) -> Report:
    import msgspec

    from syncscope.findings import SCHEMA_VERSION, Report

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
