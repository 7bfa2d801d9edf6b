"""``syncscope profile SCRIPT [ARGS]…``: run a program and record windows of its steps."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from syncscope.cli.program import (
    NOTHING_RECORDED,
    die,
    leave,
    loader,
    paths_of,
    print_report,
    require_gpu,
    run,
    say,
    shown,
    stem_of,
)

if TYPE_CHECKING:
    from syncscope.collect.collector import Collector


def profile(
    script: Annotated[list[str] | None, typer.Argument(metavar="SCRIPT [ARGS]", show_default=False)] = None,
    module: Annotated[str | None, typer.Option("-m", metavar="MODULE", help="Run a module, as python -m does.")] = None,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", metavar="DIR", help="Folder to write to  [default: syncscope-SCRIPT]"),
    ] = None,
    warmup: Annotated[int, typer.Option(min=0, help="Steps to skip first.")] = 5,
    bare: Annotated[int, typer.Option(min=0, help="Steps to time without a profiler.")] = 10,
    steps: Annotated[int, typer.Option(min=1, help="Steps to record.")] = 5,
    attribution: Annotated[int, typer.Option(min=0, help="Later steps to record with PyTorch's ops.")] = 3,
    mode: Annotated[
        str,
        typer.Option(help="windows: a light recording, and ops in a separate window. full: one window with all."),
    ] = "windows",
    hazards: Annotated[bool, typer.Option("--hazards", help="Look for races too, in a separate, slow window.")] = False,
    seconds: Annotated[
        float | None,
        typer.Option(min=0.01, metavar="S", help="Record windows of S seconds instead of steps."),
    ] = None,
    profile_at: Annotated[
        int, typer.Option("--profile-at", metavar="STEP", min=0, help="Begin the windows at this step, not before.")
    ] = 0,
    stop: Annotated[bool, typer.Option("--stop", help="End the program after the last window.")] = False,
    source: Annotated[bool, typer.Option("--source/--no-source", help="Keep source lines in the recording.")] = True,
) -> None:
    """Run a program and record where it waits for the GPU.

    A step ends at syncscope.step(), or else at the optimiser's step, or else at the call of the outermost module.
    syncscope skips the first steps (--warmup), times the next without a profiler (--bare), and records the ones after
    (--steps, --attribution). It writes trace.json.gz (opens in Perfetto), report.json and report.html to the folder.

    Options after the script's name belong to the script. Its output and exit status stay its own.

    [bold]Examples[/bold]

      syncscope profile train.py --epochs 1
      syncscope profile --steps 3 --stop -o out -m my_package.train --config small.yaml
      torchrun --nproc-per-node 2 -m syncscope profile train.py

    [bold]Exit status[/bold]: the script's own; 2 wrong usage; 3 the script succeeded but nothing was recorded, or
    there is no GPU and the script did not run.
    """
    from syncscope.collect.windows import Plan
    from syncscope.session import plan_by_time

    if mode not in ("windows", "full"):
        raise typer.BadParameter(f"{mode!r} is neither 'windows' nor 'full'.", param_hint="--mode")
    arguments = list(script or ())
    if module is None and not arguments:
        raise typer.BadParameter("name a script, or a module with -m.", param_hint="SCRIPT")
    name = module or arguments.pop(0)
    load = loader(name, is_module=module is not None)
    require_gpu()
    plan = Plan(
        warmup=warmup, bare=bare, steps=steps, attribution=attribution, mode=mode, stop=stop,  # type: ignore[arg-type]
        hazards=steps if hazards else 0, begin_at=profile_at,
    )  # fmt: skip
    if seconds is not None:
        plan = plan_by_time(plan)
    collector = _collector(name, module, output, plan, seconds, source)
    status = run(collector, load, arguments, lambda: 0 if _summary(collector) else NOTHING_RECORDED)
    if status < 0:
        die(-status)
    if collector.stopped:
        leave(status)
    raise typer.Exit(status)


def _collector(
    name: str, module: str | None, output: Path | None, plan: Any, seconds: float | None, source: bool
) -> Collector:
    from syncscope.collect.collector import Collector

    folder = output or Path(f"syncscope-{stem_of(name, module)}")
    return Collector(folder.absolute(), plan, paths_of(name, module), seconds=seconds, source=source)


def _summary(collector: Collector) -> bool:
    """Write the reports and print the summary on stderr. Returns whether anything was recorded."""
    from syncscope.session import write_reports

    for note in collector.notes:
        say(f"note: {note}" if collector.path else f"error: nothing was recorded: {note}")
    if collector.path is None:
        return False
    try:
        report = write_reports(collector.path.parent)
    except Exception as error:  # the program's status must not depend on its recording
        say(f"error: the reports could not be written ({type(error).__name__}: {error})")
        report = None
    if report is not None:
        print_report(report, "the program is over, and this is what was recorded:")
        say(f"wrote {shown(collector.path.parent)}/: trace.json.gz (opens in Perfetto), report.json, report.html")
    else:
        say(f"wrote {collector.path}")
    return True
