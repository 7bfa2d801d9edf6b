"""``syncscope report``."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from syncscope.cli.options import BareMs, Cache, Config, MaxSize, Output
from syncscope.cli.saved import is_report, read_report

if TYPE_CHECKING:
    from syncscope.cli.output import Content, Target
    from syncscope.schema.report import Report
    from syncscope.trace.source import Reading


def report(
    source: Annotated[
        str,
        typer.Argument(
            metavar="REPORT.json|TRACE", help="A saved report, a trace or a folder of traces.", show_default=False
        ),
    ],
    output: Output = None,
    perfetto: Annotated[
        Path | None,
        typer.Option(
            "--perfetto",
            metavar="PATH",
            help="Write the trace with the findings as tracks of their own, for Perfetto; gzipped where PATH ends in "
            ".gz. For several traces PATH is a folder.",
            show_default=False,
        ),
    ] = None,
    bare_ms: BareMs = None,
    max_size: MaxSize = None,
    cache: Cache = False,
    config: Config = None,
) -> None:
    """Write the HTML report, or the trace with the findings in it, from a trace or from a saved JSON report.

    From a saved report the timeline is drawn from the traces beside it, where they are still there.

    [bold]Examples[/bold]

      syncscope report trace.json.gz -o report.html
      syncscope report out/report.json -o report.html
      syncscope report trace.json.gz --perfetto found.json.gz

    [bold]Exit status[/bold]: 0; 2 wrong usage or configuration; 3 a file that cannot be read.
    """
    from syncscope.analysis.analyze import find_traces
    from syncscope.cli.errors import USAGE, CommandError
    from syncscope.cli.output import Content, deliver, needs_picture, targets
    from syncscope.cli.perfetto import annotate, by_name, destinations, traces_beside
    from syncscope.cli.study import end_unread, reading, study
    from syncscope.policy import load_policy

    if not output and perfetto is None:
        raise CommandError("nothing to write: name a file with --output or --perfetto", USAGE)
    file, how = Path(source), reading(max_size, cache)  # a URL is no file
    if is_report(file):
        wanted, found = targets(output, [source]), read_report(file)
        marked = destinations(
            perfetto, traces_beside(found, file.parent) if perfetto else {}, [source, *_paths(wanted)]
        )
        deliver(wanted, _drawn(found, file.parent, how) if needs_picture(wanted) else Content(found))
        annotate(found, marked, how.max_bytes)
        return
    traces = by_name(find_traces([source])) if perfetto else {}
    marked = destinations(perfetto, traces, _paths(targets(output, traces.values())))
    policy = load_policy(Path.cwd(), config)
    found, lanes, wanted = study([source], output, policy, bare_ms=bare_ms, reading=how)
    deliver(wanted, Content(found, lanes))
    annotate(found, marked, how.max_bytes)
    end_unread(found)


def _paths(wanted: Iterable[Target]) -> list[Path]:
    return [target.path for target in wanted]


def _drawn(saved: Report, folder: Path, how: Reading) -> Content:
    from syncscope.analysis.analyze import draw_beside
    from syncscope.cli.output import Content

    return Content(*draw_beside(saved, folder, how))
