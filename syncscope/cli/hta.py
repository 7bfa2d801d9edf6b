"""``syncscope hta``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from syncscope.cli.errors import USAGE, CommandError
from syncscope.cli.options import Cache, MaxSize, Traces

if TYPE_CHECKING:
    from syncscope.hta.report import HTAReport
    from syncscope.trace.source import Reading

WRITES = ("text", "json")


def hta(
    traces: Traces,
    format: Annotated[Literal["text", "json"] | None, typer.Option("--format", show_default=False)] = None,
    output: Annotated[
        list[str] | None,
        typer.Option(
            "--output",
            "-o",
            metavar="[FORMAT=]PATH",
            help="Write a file: text or json, as named or by its ending (.txt, .json); the path - is standard output. "
            "Repeatable.",
            show_default=False,
        ),
    ] = None,
    last_step: Annotated[
        bool, typer.Option("--last-step", help="Keep the last profiler step, which HTA leaves out.")
    ] = False,
    max_size: MaxSize = None,
    cache: Cache = False,
) -> None:
    """Run the analyses of HolisticTraceAnalysis (HTA) without its parser, and print their tables.

    Temporal and idle-time breakdown, overlap of communication with computation, length of the launch queue, critical
    path of the second step: HTA's own code on the columns that syncscope reads. An analysis that HTA cannot run on a
    trace says why. Needs HTA: pip install 'syncscope[hta]'. HTA_DISABLE_NS_ROUNDING=1 in the environment keeps the
    nanoseconds that HTA rounds away.

    [bold]Examples[/bold]

      syncscope hta trace.json.gz
      syncscope hta run/ --last-step
      syncscope hta trace.json.gz --format json
      syncscope hta run/ -o hta.json

    [bold]Exit status[/bold]: 0; 2 wrong usage, or HTA is not installed; 3 a trace that cannot be read.
    """
    from syncscope.analysis.analyze import find_traces, require_hta
    from syncscope.cli.output import STDOUT, targets, with_stdout, write
    from syncscope.cli.study import reading

    files = find_traces(traces)
    wanted = targets(with_stdout(output, format), [*traces, *files])
    for target in wanted:
        if target.format not in WRITES:
            raise CommandError(f"{target.path}: hta writes text and json, not {target.format}", USAGE)
    require_hta()
    report = _run(files, last_step, reading(max_size, cache))
    for target in wanted:
        if target.path != STDOUT:
            write(target.path, [_rendered(report, target.format).encode("utf-8", errors="replace")])
    for target in wanted:
        if target.path == STDOUT:
            _print(report, target.format)


def _run(files: Sequence[str], last_step: bool, how: Reading) -> HTAReport:
    import msgspec

    from syncscope import __version__, load
    from syncscope.cli.progress import progress
    from syncscope.hta import analyses
    from syncscope.hta.report import HTAReport, HTATrace
    from syncscope.schema.report import Tool

    found = []
    with progress(files) as bar:
        for done, file in enumerate(files):
            if bar:
                bar(file, done, len(files))
            trace = load(file, **msgspec.structs.asdict(how))
            tables = analyses(trace, include_last_profiler_step=last_step)
            found.append(HTATrace(path=trace.path, rank=trace.rank, hta=tables))
    return HTAReport(tool=Tool(name="syncscope", version=__version__), traces=tuple(found))


def _rendered(report: HTAReport, format: str) -> str:
    if format == "json":
        from syncscope.report.escape import json_text

        return json_text(report.to_json()) + "\n"
    from syncscope.report.text_hta import to_text

    return to_text(report)


def _print(report: HTAReport, format: str) -> None:
    from syncscope.cli.console import stdout, write_stdout

    if format == "json":
        write_stdout(_rendered(report, format))
        return
    from syncscope.report.text_hta import show

    show(report, stdout())
