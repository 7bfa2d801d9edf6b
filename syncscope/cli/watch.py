"""``syncscope watch SCRIPT [ARGS]…``: count where a program waits, for as long as it runs."""

from __future__ import annotations

import sys
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from syncscope.cli.ending import die, leave
from syncscope.cli.errors import USAGE, CommandError
from syncscope.cli.options import Module, Script
from syncscope.cli.program import loader, project_of, require_gpu, run, say, shown, stem_of
from syncscope.cli.summary import print_report

if TYPE_CHECKING:
    from syncscope.collect.children.request import Request
    from syncscope.collect.watch.watcher import Watcher

REPORT, GATE, LIVE = "Report", "New waits", "While it runs"
"""Groups of options in ``--help``."""
MOST_PLACES = 5
"""New lines that are named at the end."""

ReportFile = Annotated[
    Path | None,
    typer.Option(
        "--output",
        "-o",
        metavar="FILE",
        rich_help_panel=REPORT,
        help="JSON report to write; default: syncscope-SCRIPT-watch/report.json. The counts go beside a file that "
        "is called report.json, and else to a folder FILE-counts.",
    ),
]
Every = Annotated[
    str | None,
    typer.Option(
        "--every",
        metavar="TIME",
        rich_help_panel=REPORT,
        help="Write the report every so often, too: 30s, 10m, 2h.",
        show_default=False,
    ),
]
Signal = Annotated[
    str | None,
    typer.Option(
        "--signal",
        metavar="NAME",
        rich_help_panel=REPORT,
        help="Write the report when this signal comes, too, such as USR1.",
        show_default=False,
    ),
]
Baseline = Annotated[
    Path | None,
    typer.Option(
        "--baseline",
        metavar="FILE",
        rich_help_panel=GATE,
        help="Warn at once when a line waits that is not in it.",
        show_default=False,
    ),
]
Fail = Annotated[
    bool, typer.Option("--fail", rich_help_panel=GATE, help="End the program at such a line, with status 1.")
]
Export = Annotated[
    list[str] | None,
    typer.Option(
        "--export",
        metavar="KIND[=TARGET]",
        rich_help_panel=LIVE,
        help="Send figures while the program runs: tensorboard=DIR, wandb, wandb=PROJECT, prometheus=PORT, "
        "jsonl=FILE. Repeatable.",
        show_default=False,
    ),
]
Children = Annotated[
    bool, typer.Option("--children/--no-children", help="Count in the processes that the program starts, too.")
]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", rich_help_panel=LIVE, help="Show no live line.")]
Source = Annotated[
    bool, typer.Option("--source/--no-source", rich_help_panel=REPORT, help="Keep source lines in the report.")
]


def watch(
    script: Script = None,
    module: Module = None,
    output: ReportFile = None,
    every: Every = None,
    signal: Signal = None,
    baseline: Baseline = None,
    fail: Fail = False,
    export: Export = None,
    children: Children = True,
    quiet: Quiet = False,
    source: Source = True,
) -> None:
    """Run a program and count where it waits for the GPU, from its first step to its last.

    No profiler runs, and counting aims at 1 % of the time. On a terminal, one line shows what was counted so far.

    Options after the script's name belong to the script. Its output and exit status stay its own. The processes that it
    starts are counted, too, once they use CUDA.

    [bold]Examples[/bold]

      syncscope watch train.py --epochs 90
      syncscope watch --every 10m --export tensorboard=runs/waits train.py
      syncscope watch --baseline syncscope-baseline.json --fail train.py

    [bold]Exit status[/bold]: the script's own; 1 with --fail when a line waits that is not in the baseline; 2 wrong
    usage; 3 there is no GPU and the script did not run.
    """
    arguments = list(script or ())
    if module is None and not arguments:
        raise typer.BadParameter("name a script, or a module with -m.", param_hint="SCRIPT")
    from syncscope.collect.children.announce import announced
    from syncscope.collect.children.presence import still_recorded

    _refuse_files(output, baseline, fail)
    name = module or arguments.pop(0)
    load = loader(name, arguments, is_module=module is not None)
    report = (output or Path(f"syncscope-{stem_of(name, module)}-watch") / "report.json").absolute()
    require_gpu(advice="")
    request = _request(name, module, report, source)
    watcher = _watcher(
        name, module, report, request, every, signal, baseline, fail, export or [], live=not quiet, children=children
    )
    status = run(
        watcher, load, arguments,
        lambda terminated: _conclude(watcher, request, report, baseline, fail, quick=terminated),
        announced(request, children=children),
        recorded=lambda: still_recorded(Path(request.folder), request.run),
    )  # fmt: skip
    if status < 0:
        die(-status)
    if watcher.failed:
        leave(status)
    raise typer.Exit(status)


def _request(name: str, module: str | None, report: Path, source: bool) -> Request:
    from syncscope.watching import count_request

    root, own = project_of(name, module)
    return count_request(counts_folder(report), root, own, source)


def _watcher(
    name: str, module: str | None, report: Path, request: Request, every: str | None, signal: str | None,
    baseline: Path | None, fail: bool, export: list[str], *, live: bool, children: bool,
) -> Watcher:  # fmt: skip
    from syncscope.collect.export import ExportError
    from syncscope.collect.paths import Paths
    from syncscope.collect.watch.on_signal import signal_number
    from syncscope.collect.watch.watcher import Options, Watcher
    from syncscope.watching import exporters_of, judge, names_of, read_others, seconds, write_report

    start = Path.cwd() if module else Path(name).resolve().parent
    try:
        known, phases = judge(baseline.absolute() if baseline is not None else None, start)
        options = Options(
            every=seconds(every) if every is not None else None,
            on_report=lambda: _write(write_report, watcher, report),
            known=known,
            phases=phases,
            say=say,
            live=live,
            signal=signal_number(signal) if signal is not None else None,
            fail=fail,
            exporters=exporters_of(export),
            others=partial(read_others, request) if children else None,
        )
    except ExportError as error:
        raise CommandError(str(error), USAGE) from None
    except ValueError as error:
        if type(error) is not ValueError:
            raise
        raise CommandError(str(error), USAGE) from None
    watcher = Watcher(names_of(request), Paths(Path(request.root), request.own), options, source=request.source)
    return watcher


def counts_folder(report: Path) -> Path:
    """The folder of the file with what was counted. A folder that has other files, too, may hold another recording."""
    return report.parent if report.name == "report.json" else report.with_name(f"{report.stem}-counts")


def _write(write_report: Any, watcher: Watcher, path: Path) -> Any:
    try:
        return write_report(watcher, path)
    except Exception as error:  # the program must not fail because of its report
        say(f"error: the report could not be written ({type(error).__name__}: {error})")
        return None


def _refuse_files(output: Path | None, baseline: Path | None, fail: bool) -> None:
    """Raise an error of usage for a report or a baseline that cannot be, before the program runs."""
    if output is not None and output.is_dir():
        raise typer.BadParameter(f"{output} is a folder: name a file, {output / 'report.json'}.", param_hint="--output")
    if fail and baseline is None:
        raise typer.BadParameter("needs --baseline.", param_hint="--fail")
    if baseline is not None and not baseline.exists():
        writes = f"syncscope check RECORDING --baseline {baseline} --write-baseline writes it"
        raise CommandError(f"{baseline}: there is no such baseline; {writes}", USAGE)


def _conclude(
    watcher: Watcher, request: Request, path: Path, baseline: Path | None, fail: bool, *, quick: bool
) -> int:  # fmt: skip
    """Write the report and print it on stderr. Returns the status of a program that succeeded.

    ``quick`` leaves out what can be had from the file, and waits for no other process.
    """
    from syncscope.session import PATIENCE
    from syncscope.watching import end_with_others, read_others, write_report

    end_with_others(watcher, 0 if quick else PATIENCE)
    others = read_others(request)
    for note in watcher.notes:
        if watcher.count.began or not others:
            say(f"note: {note}")
    if watcher.count.began or others:
        report = _write(write_report, watcher, path)
        if report is not None and sys.__stderr__ is not None:
            if not quick:
                print_report(report, "the program is over, and this is what was counted:")
            say(f"wrote {shown(path)}")
    if baseline is not None and watcher.count.began:
        say(_judgement(watcher, baseline))
    return 1 if fail and watcher.new_lines else 0


def _judgement(watcher: Watcher, baseline: Path) -> str:
    """Which lines the baseline does not know, and whether the program was ended for them."""
    places = list(dict.fromkeys(f"{line.file}:{line.line}" for line in watcher.new_lines))
    if not places:
        return f"no line waits that {baseline} does not know"
    more = f" and {len(places) - MOST_PLACES} more" if len(places) > MOST_PLACES else ""
    wait = "1 line waits" if len(places) == 1 else f"{len(places)} lines wait"
    ended = "; --fail ended the program" if watcher.failed else ""
    return f"{wait} that {baseline} does not know: {', '.join(places[:MOST_PLACES])}{more}{ended}"
