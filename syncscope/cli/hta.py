"""``syncscope hta``: run the analyses of HolisticTraceAnalysis."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from syncscope.cli.errors import USAGE, CommandError
from syncscope.cli.options import Cache, Jobs, MaxSize, Scheduler, Traces
from syncscope.cli.options import Engine as EngineName

if TYPE_CHECKING:
    from syncscope.analysis.engine import Engine
    from syncscope.schema.report import HTAReport
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
            help="Write a file. FORMAT is text or json; without it the ending decides (.txt, .json). The path - is "
            "standard output. Repeatable.",
            show_default=False,
        ),
    ] = None,
    last_step: Annotated[
        bool, typer.Option("--last-step", help="Include the last profiler step, which HTA drops.")
    ] = False,
    jobs: Jobs = None,
    engine: EngineName = "local",
    scheduler: Scheduler = None,
    max_size: MaxSize = None,
    cache: Cache = False,
) -> None:
    """Run the analyses of HolisticTraceAnalysis (HTA) on the columns that syncscope reads, and print their tables.

    The analyses are HTA's own code: temporal breakdown, idle-time breakdown, overlap of communication with computation,
    length of the launch queue, and the critical path of the second step. Several traces are read in parallel. Where
    HTA cannot run an analysis on a trace, the output says why. Needs HTA: pip install 'syncscope\\[hta]'. HTA rounds
    times to microseconds; set HTA_DISABLE_NS_ROUNDING=1 in the environment to keep the nanoseconds.

    [bold]Examples[/bold]

      syncscope hta trace.json.gz
      syncscope hta run/ --last-step
      syncscope hta trace.json.gz --format json
      syncscope hta run/ -o hta.json

    [bold]Exit status[/bold]: 0 done; 2 wrong usage, or HTA is not installed; 3 a trace cannot be read.
    """
    from syncscope.analysis.analyze import find_traces, require_hta
    from syncscope.cli.inputs import reading_options, select_engine
    from syncscope.cli.output import STDOUT, say_written, targets, with_stdout, write

    files = find_traces(traces)
    wanted = targets(with_stdout(output, format), [*traces, *files])
    for target in wanted:
        if target.format not in WRITES:
            raise CommandError(f"{target.path}: hta writes text and json, not {target.format}", USAGE)
    require_hta()
    chosen = select_engine(jobs, engine, scheduler)
    report = _run(files, chosen, last_step, reading_options(max_size, cache))
    for target in wanted:
        if target.path != STDOUT:
            write(target.path, [_render(report, target.format).encode("utf-8", errors="replace")])
            say_written(target.path)
    for target in wanted:
        if target.path == STDOUT:
            _print(report, target.format)


def _run(files: Sequence[str], engine: Engine | None, last_step: bool, reading: Reading) -> HTAReport:
    from syncscope.analysis.analyze import choose_engine, run_hta
    from syncscope.cli.console import progress
    from syncscope.cli.inputs import usual_processes

    with progress(files) as bar:
        engine = engine or choose_engine(usual_processes(files))
        return run_hta(files, engine, last_step=last_step, reading=reading, progress=bar)


def _render(report: HTAReport, format: str) -> str:
    if format == "json":
        from syncscope.report.escape import json_text

        return json_text(report.to_json()) + "\n"
    from syncscope.report.text_hta import to_text

    return to_text(report)


def _print(report: HTAReport, format: str) -> None:
    from syncscope.cli.console import stdout, write_stdout

    if format == "json":
        write_stdout(_render(report, format))
        return
    from syncscope.report.text_hta import show

    show(report, stdout())
