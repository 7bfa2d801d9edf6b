"""``syncscope profile SCRIPT [ARGS]…``: run a program and record windows of its steps."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from syncscope.cli.ending import die, leave
from syncscope.cli.options import Module, Script
from syncscope.cli.program import (
    NOTHING_RECORDED,
    loader,
    project_of,
    require_gpu,
    run,
    say,
    shown,
    stem_of,
)
from syncscope.cli.summary import print_report

if TYPE_CHECKING:
    from syncscope.collect.children.request import Request
    from syncscope.collect.collector import Collector
    from syncscope.collect.plan import Plan

STEPS, CONTENTS = "Which steps", "What is recorded"
"""Groups of options in ``--help``."""

Folder = Annotated[
    Path | None,
    typer.Option("--output", "-o", metavar="DIR", help="Folder to write to; default: syncscope-SCRIPT."),
]
Warmup = Annotated[
    int, typer.Option("--warmup", metavar="N", min=0, rich_help_panel=STEPS, help="Steps to skip first.")
]
Bare = Annotated[
    int, typer.Option("--bare", metavar="N", min=0, rich_help_panel=STEPS, help="Steps to time without a profiler.")
]
Steps = Annotated[int, typer.Option("--steps", metavar="N", min=1, rich_help_panel=STEPS, help="Steps to record.")]
Attribution = Annotated[
    int,
    typer.Option(
        "--attribution", metavar="N", min=0, rich_help_panel=STEPS, help="Later steps to record with PyTorch's ops."
    ),
]
Mode = Annotated[
    str,
    typer.Option(
        "--mode",
        metavar="MODE",
        rich_help_panel=CONTENTS,
        help="windows: a light recording, and PyTorch's ops in a window of their own. full: one window with all.",
    ),
]
Hazards = Annotated[
    bool,
    typer.Option("--hazards", rich_help_panel=CONTENTS, help="Look for races too, in a separate, slow window."),
]
Seconds = Annotated[
    float | None,
    typer.Option(
        "--seconds",
        min=0.01,
        metavar="S",
        rich_help_panel=STEPS,
        help="Record windows of S seconds instead of steps.",
    ),
]
ProfileAt = Annotated[
    int,
    typer.Option(
        "--profile-at",
        metavar="STEP",
        min=0,
        rich_help_panel=STEPS,
        help="Begin the windows of a phase at this step.",
    ),
]
Phase = Annotated[
    str | None,
    typer.Option(
        "--phase",
        metavar="NAME",
        rich_help_panel=STEPS,
        help="Record this phase only: a kind (train, evaluate, generate, …), a name or a function.",
    ),
]
Stop = Annotated[
    bool,
    typer.Option(
        "--stop", rich_help_panel=STEPS, help="End the program once training, or else its main phase, is recorded."
    ),
]
Count = Annotated[
    bool,
    typer.Option("--count/--no-count", rich_help_panel=CONTENTS, help="Count the waits of the whole run, too."),
]
Source = Annotated[
    bool, typer.Option("--source/--no-source", rich_help_panel=CONTENTS, help="Keep source lines in the recording.")
]
Children = Annotated[
    bool,
    typer.Option(
        "--children/--no-children",
        rich_help_panel=CONTENTS,
        help="Record the processes that the program starts, too.",
    ),
]


def profile(
    script: Script = None,
    module: Module = None,
    output: Folder = None,
    warmup: Warmup = 5,
    bare: Bare = 10,
    steps: Steps = 5,
    attribution: Attribution = 3,
    mode: Mode = "windows",
    hazards: Hazards = False,
    seconds: Seconds = None,
    profile_at: ProfileAt = 0,
    phase: Phase = None,
    stop: Stop = False,
    count: Count = True,
    source: Source = True,
    children: Children = True,
) -> None:
    """Run a program and record where it waits for the GPU.

    syncscope counts every wait of the run, and records windows of its phases: training, evaluation, generation,
    rollouts. In each it skips the first steps (--warmup), times the next without a profiler (--bare), and records the
    ones after (--steps, --attribution). A step ends at syncscope.step(), or else at the optimizer's step, or else at
    the call of the outermost module, or else at the turn of a loop. Processes that the program starts are recorded,
    too, once they use CUDA.

    The folder gets trace.json.gz (opens in Perfetto) and a trace for each further phase and process, report.json and
    report.html.

    Options after the script's name belong to the script. Its output and exit status stay its own.

    [bold]Examples[/bold]

      syncscope profile train.py --epochs 1
      syncscope profile --steps 3 --stop -o out -m my_package.train --fast
      torchrun --nproc-per-node 2 -m syncscope profile train.py

    [bold]Exit status[/bold]: the script's own; 2 wrong usage; 3 the script succeeded but nothing was recorded, or
    there is no GPU and the script did not run.
    """
    from syncscope.collect.children.announce import announced
    from syncscope.collect.children.presence import still_recorded
    from syncscope.collect.plan import BARE_SECONDS, Plan
    from syncscope.collect.profiler import forked_from_a_window
    from syncscope.session import PATIENCE, plan_by_time

    if mode not in ("windows", "full"):
        raise typer.BadParameter(f"{mode!r} is neither 'windows' nor 'full'.", param_hint="--mode")
    arguments = list(script or ())
    if module is None and not arguments:
        raise typer.BadParameter("name a script, or a module with -m.", param_hint="SCRIPT")
    name = module or arguments.pop(0)
    if output is not None and output.exists() and not output.is_dir():
        raise typer.BadParameter(f"{output} is a file: name a folder.", param_hint="--output")
    load = loader(name, arguments, is_module=module is not None)
    require_gpu()
    plan = Plan(
        warmup=warmup, bare=bare, steps=steps, attribution=attribution, mode=mode, stop=stop,  # type: ignore[arg-type]
        hazards=steps if hazards else 0, phase=phase, begin_at=profile_at, count=count, bare_seconds=BARE_SECONDS,
    )  # fmt: skip
    if seconds is not None:
        plan = plan_by_time(plan)
    request = _request(name, module, output, plan, seconds, source)
    collector = request.make_collector()
    existed = os.path.exists(request.folder)

    def conclude(terminated: bool) -> int:
        recorded = _summary(collector, request, patience=0 if terminated else PATIENCE)
        if not recorded and not existed:
            with contextlib.suppress(OSError):  # there is something in it, or it was never made
                os.rmdir(request.folder)
        return 0 if recorded else NOTHING_RECORDED

    status = run(
        collector, load, arguments, conclude, announced(request, children=children), lambda: collector.stopped,
        lambda: still_recorded(Path(request.folder), request.run),
    )  # fmt: skip
    if status < 0:
        die(-status)
    if forked_from_a_window():
        leave(status, threads=True)
    if collector.stopped:
        leave(status)
    raise typer.Exit(status)


def _request(
    name: str, module: str | None, output: Path | None, plan: Plan, seconds: float | None, source: bool
) -> Request:
    from syncscope.collect.children.request import Request
    from syncscope.collect.naming import rank_in_environment

    root, own = project_of(name, module)
    folder = (output or Path(f"syncscope-{stem_of(name, module)}")).absolute()
    return Request(
        str(folder), plan, str(root), own, seconds=seconds, source=source, inherited=rank_in_environment()
    )  # fmt: skip


def _summary(collector: Collector, request: Request, patience: float) -> bool:
    """Write the reports and print the summary on stderr. Returns whether anything was recorded.

    Other processes of the program that are still being recorded get ``patience`` seconds to end.
    """
    from syncscope.collect.children.presence import wait_for_others
    from syncscope.collect.files import count_processes
    from syncscope.report.run_phrases import describe_missed_phase
    from syncscope.session import write_reports

    folder = Path(request.folder)
    wait_for_others(folder, request.run, patience)
    processes = count_processes(folder, request.run)
    if processes == 0:
        for note in collector.notes if collector.path is None else ():
            say(f"error: nothing was recorded: {note}")
        return False
    try:
        report = write_reports(folder, request.run, request.inherited[1] or 1)
    except Exception as error:  # the program's status must not depend on its recording
        say(f"error: the reports could not be written ({type(error).__name__}: {error})")
        report = None
    told = {warning for info in report.traces for warning in info.warnings} if report else set()
    for note in collector.notes if collector.path is not None else ():
        if note not in told:
            say(f"note: {note}")
    missed = describe_missed_phase(report, request.plan.phase) if report and request.plan.phase else None
    if missed is not None:
        say(f"note: {missed}")
    if report is not None:
        print_report(report, "the program is over, and this is what was recorded:")
        traces = "trace.json.gz (opens in Perfetto)"
        if processes > 1 or not (folder / "trace.json.gz").exists():
            traces = f"traces of {processes} process{'es' if processes > 1 else ''} (trace*.json.gz, open in Perfetto)"
        say(f"wrote {shown(folder)}/: {traces}, report.json, report.html")
    else:
        say(f"wrote {shown(collector.path or folder)}")
    return True
