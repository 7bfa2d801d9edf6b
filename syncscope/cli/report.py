"""``syncscope report``: the HTML page, and the trace with its findings for Perfetto."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from syncscope.cli.errors import UNREADABLE, USAGE, CommandError
from syncscope.cli.inputs import analyze_traces, choose_phase, exit_if_unread, is_report, read_report, reading_options
from syncscope.cli.options import OUTPUT, BareMs, Cache, Config, MaxSize, OnlyPhase, Open, Output
from syncscope.cli.output import Content, needs_picture, open_pages, targets, with_page, write_outputs
from syncscope.cli.perfetto import annotate, by_name, destinations, traces_beside

if TYPE_CHECKING:
    from syncscope.cli.output import Target


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
            rich_help_panel=OUTPUT,
            help="Write the trace with the findings as additional tracks, for Perfetto. A PATH that ends in .gz is "
            "gzipped. For several traces, PATH is a folder.",
            show_default=False,
        ),
    ] = None,
    open: Open = False,
    phase: OnlyPhase = None,
    bare_ms: BareMs = None,
    max_size: MaxSize = None,
    cache: Cache = False,
    config: Config = None,
) -> None:
    """Write the HTML report, or the trace with its findings, from a trace or from a saved JSON report.

    The timeline needs the traces. For a saved report they are looked for in the same folder as the report.

    [bold]Examples[/bold]

      syncscope report trace.json.gz -o report.html
      syncscope report out/report.json -o report.html
      syncscope report out/ --open
      syncscope report trace.json.gz --perfetto found.json.gz

    [bold]Exit status[/bold]: 0 done; 2 wrong usage or configuration; 3 a file that cannot be read.
    """
    from syncscope.analysis.analyze import draw_beside, find_traces
    from syncscope.policy import load_policy

    file, reading = Path(source), reading_options(max_size, cache)  # a URL is no file
    output = with_page(output or [], open)
    if not output and perfetto is None:
        if "://" not in source and not file.exists():
            raise CommandError(f"{source}: does not exist", UNREADABLE)
        raise CommandError("nothing to write: name a file with --output or --perfetto, or say --open", USAGE)
    if is_report(file):
        wanted, saved = targets(output, [source]), choose_phase(read_report(file), phase)
        traces = traces_beside(saved, file.parent) if perfetto else {}
        written = destinations(perfetto, traces, [source, *_paths(wanted)])
        content = Content(*draw_beside(saved, file.parent, reading)) if needs_picture(wanted) else Content(saved)
        write_outputs(wanted, content)
        annotate(saved, written, reading.max_bytes)
        open_pages(wanted, open)
        return
    traces = by_name(find_traces([source])) if perfetto else {}
    written = destinations(perfetto, traces, _paths(targets(output, traces.values())))
    policy = load_policy(Path.cwd(), config)
    result, lanes, wanted = analyze_traces([source], output, policy, bare_ms=bare_ms, reading=reading)
    result = choose_phase(result, phase)
    write_outputs(wanted, Content(result, lanes))
    annotate(result, written, reading.max_bytes)
    open_pages(wanted, open)
    exit_if_unread(result)


def _paths(wanted: Iterable[Target]) -> list[Path]:
    return [target.path for target in wanted]
