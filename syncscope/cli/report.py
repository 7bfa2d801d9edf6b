"""``syncscope report``."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from syncscope.cli.options import BareMs, Config, Output
from syncscope.cli.saved import is_report, read_report

if TYPE_CHECKING:
    from syncscope.findings import Report
    from syncscope.timeline.lanes import Lanes


def report(
    source: Annotated[
        Path,
        typer.Argument(
            metavar="REPORT.json|TRACE", help="A saved report, a trace or a folder of traces.", show_default=False
        ),
    ],
    output: Output,
    bare_ms: BareMs = None,
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

    if not is_report(source):
        found, lanes, wanted = study([source], output, load_policy(Path.cwd(), config), bare_ms=bare_ms)
        deliver(wanted, Content(found, lanes))
        return
    wanted = targets(output, [source])
    saved = read_report(source)
    deliver(wanted, Content(saved, _pictures(saved, source.parent) if needs_picture(wanted) else ()))


def _pictures(saved: Report, folder: Path) -> Sequence[Lanes]:
    from syncscope.analysis import lanes_beside

    return lanes_beside(saved, folder)
