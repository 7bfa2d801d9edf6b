"""``syncscope profile SCRIPT [ARGS]…``: run a program and record windows of its steps."""

from __future__ import annotations

import atexit
import contextlib
import os
import signal
import sys
import threading
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Annotated, Any, NoReturn

import typer
from typer.core import TyperCommand, TyperOption

if TYPE_CHECKING:
    from syncscope.collect.children.request import Request
    from syncscope.collect.collector import Collector
    from syncscope.schema.report import Report

NOTHING_RECORDED = 3


class ScriptCommand(TyperCommand):
    """Leaves everything after the script's name, or after ``-m MODULE``, to the script."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        takes_value = {
            name
            for parameter in self.params
            if isinstance(parameter, TyperOption) and not parameter.is_flag and not parameter.count
            for name in parameter.opts
        }
        index = 0
        while index < len(args) and args[index].startswith("-") and args[index] != "--":
            if args[index] == "-m":
                index += 2
                break
            index += 2 if args[index] in takes_value else 1
        if args[index : index + 1] != ["--"]:
            args = [*args[:index], "--", *args[index:]]
        return super().parse_args(ctx, args)


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
    stop: Annotated[bool, typer.Option("--stop", help="End the program after the last window.")] = False,
    source: Annotated[bool, typer.Option("--source/--no-source", help="Keep source lines in the recording.")] = True,
    children: Annotated[
        bool,
        typer.Option("--children/--no-children", help="Record the processes that the program starts, too."),
    ] = True,
) -> None:
    """Run a program and record where it waits for the GPU.

    A step ends at syncscope.step(), or else at the optimiser's step, or else at the call of the outermost module.
    syncscope skips the first steps (--warmup), times the next without a profiler (--bare), and records the ones after
    (--steps, --attribution). It writes trace.json.gz (opens in Perfetto), report.json and report.html to the folder.
    Processes that the program starts write traces of their own there, as ranks, once they use CUDA.

    Options after the script's name belong to the script. Its output and exit status stay its own.

    [bold]Examples[/bold]

      syncscope profile train.py --epochs 1
      syncscope profile --steps 3 --stop -o out -m my_package.train --config small.yaml
      torchrun --nproc-per-node 2 -m syncscope profile train.py

    [bold]Exit status[/bold]: the script's own; 2 wrong usage; 3 the script succeeded but nothing was recorded, or
    there is no GPU and the script did not run.
    """
    from syncscope.collect.gpu import gpu_count
    from syncscope.collect.windows import Plan
    from syncscope.session import plan_by_time

    if mode not in ("windows", "full"):
        raise typer.BadParameter(f"{mode!r} is neither 'windows' nor 'full'.", param_hint="--mode")
    arguments = list(script or ())
    if module is None and not arguments:
        raise typer.BadParameter("name a script, or a module with -m.", param_hint="SCRIPT")
    name = module or arguments.pop(0)
    load = _loader(name, is_module=module is not None)
    if gpu_count() == 0:
        _say(
            "error: there is no GPU, so the script was not run. Record on a machine with a GPU, then analyse the trace "
            "on any machine: syncscope analyze TRACE"
        )
        raise typer.Exit(NOTHING_RECORDED)
    plan = Plan(
        warmup=warmup, bare=bare, steps=steps, attribution=attribution, mode=mode, stop=stop,  # type: ignore[arg-type]
        hazards=steps if hazards else 0,
    )  # fmt: skip
    if seconds is not None:
        plan = plan_by_time(plan)
    request = _request(name, module, output, plan, seconds, source)
    collector = request.make_collector()
    session = Session(request, collector, children, existed=os.path.exists(request.folder))
    status = _run(session, load, arguments)
    if status < 0:
        _die(-status)
    if collector.stopped:
        _leave(status)
    raise typer.Exit(status)


def _loader(name: str, *, is_module: bool) -> Callable[[], tuple[Any, Any]]:
    """A function that loads the program. Raises a usage error for a missing file before anything runs."""
    from syncscope.collect.run import load_module, load_script

    if not is_module and not os.path.isfile(name):
        hint = " (to run a module, use -m)" if not name.endswith(".py") else ""
        raise typer.BadParameter(f"{name}: no such file{hint}.", param_hint="SCRIPT")
    return lambda: load_module(name) if is_module else load_script(name)


def _request(
    name: str, module: str | None, output: Path | None, plan: Any, seconds: float | None, source: bool
) -> Request:
    from syncscope.collect.children.request import Request
    from syncscope.collect.naming import rank_in_environment
    from syncscope.collect.paths import project_root
    from syncscope.policy import own_packages

    start = Path.cwd() if module else Path(name).resolve().parent
    own = (*own_packages(start), *((module.split(".")[0],) if module else ()))
    stem = module.split(".")[-1] if module else Path(name).stem
    folder = (output or Path(f"syncscope-{stem}")).absolute()
    return Request(
        str(folder), plan, str(project_root(start)), own, seconds=seconds, source=source,
        inherited=rank_in_environment(),
    )  # fmt: skip


@dataclass(frozen=True)
class Session:
    """One run of ``profile``."""

    request: Request
    collector: Collector
    """Of this process."""
    children: bool
    """Whether processes that the program starts are recorded."""
    existed: bool
    """The folder was there before."""

    @property
    def folder(self) -> Path:
        return Path(self.request.folder)


def _run(session: Session, load: Callable[[], tuple[Any, Any]], arguments: list[str]) -> int:
    """Run the program and record it, and return the exit status of ``profile``; negative for a signal."""
    from syncscope.collect.annotations import begin, end
    from syncscope.collect.children.announce import announced
    from syncscope.collect.run import ScriptError, execute, report_syntax_error

    try:
        main, code = load()
    except ScriptError as error:
        _say(f"error: {error}")
        return 2
    except SyntaxError as error:
        report_syntax_error(error)
        return 1
    with announced(session.request, children=session.children):
        begin(session.collector)
        terminate = _on_terminate(session)
        status = execute(main, code, arguments)
    if os.getpid() != session.request.top:
        return status  # a child that the program forked, which ends like the program
    try:
        end(session.collector)
        if terminate is not None and signal.getsignal(signal.SIGTERM) is terminate:
            signal.signal(signal.SIGTERM, signal.SIG_DFL)
        with contextlib.suppress(AttributeError, ValueError, OSError):  # Python tries again, and reports
            sys.stdout.flush()
        recorded = _summary(session)
    except KeyboardInterrupt:  # the program is over, and the user does not wait for its reports
        return -signal.SIGINT
    return status if status or recorded else NOTHING_RECORDED


def _die(number: int) -> NoReturn:
    """End by a signal, as Python does after an uncaught ``KeyboardInterrupt``: threads and exit handlers come first."""
    threading._shutdown()  # type: ignore[attr-defined]
    atexit._run_exitfuncs()
    _flush()
    signal.signal(number, signal.SIG_DFL)
    os.kill(os.getpid(), number)
    os._exit(128 + number)  # where the signal is blocked


def _flush() -> None:
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(AttributeError, ValueError, OSError):  # the program may have closed it
            stream.flush()


def _leave(status: int) -> NoReturn:
    """End a program that was stopped early, even when its other threads are still waiting."""
    atexit._run_exitfuncs()
    _flush()
    os._exit(status)


def _on_terminate(session: Session) -> Callable[..., None] | None:
    """On SIGTERM, write what was recorded and then end as the program would have.

    A handler that the program sets takes the place of ours, which is returned. Where SIGTERM is ignored, it stays so.
    """
    if signal.getsignal(signal.SIGTERM) is not signal.SIG_DFL:
        return None

    def terminate(number: int, frame: FrameType | None) -> None:
        try:
            if os.getpid() == session.request.top:
                session.collector.close()
                _summary(session, patience=0)
        finally:
            signal.signal(number, signal.SIG_DFL)
            os.kill(os.getpid(), number)

    signal.signal(signal.SIGTERM, terminate)
    return terminate


def _summary(session: Session, patience: float | None = None) -> bool:
    """Write the reports and print the summary on stderr. Returns whether anything was recorded.

    Other processes of the program that are still being recorded get ``patience`` seconds to end.
    """
    from syncscope.collect.children.presence import wait_for_others
    from syncscope.collect.files import count_processes
    from syncscope.session import PATIENCE, write_reports

    collector, folder, run = session.collector, session.folder, session.request.run
    wait_for_others(folder, run, PATIENCE if patience is None else patience)
    processes = count_processes(folder, run)
    for note in collector.notes:
        if collector.path is not None:
            _say(f"note: {note}")
        elif processes == 0:
            _say(f"error: nothing was recorded: {note}")
    if processes == 0:
        if not session.existed:
            with contextlib.suppress(OSError):  # there is something in it, or it was never made
                folder.rmdir()
        return False
    try:
        report = write_reports(folder, run, session.request.inherited[1] or 1)
    except Exception as error:  # the program's status must not depend on its recording
        _say(f"error: the reports could not be written ({type(error).__name__}: {error})")
        report = None
    if report is not None:
        _print_report(report, folder, processes)
    else:
        _say(f"wrote {collector.path or folder}")
    return True


def _print_report(report: Report, folder: Path, processes: int) -> None:
    from rich.console import Console

    from syncscope.report import text

    if sys.__stderr__ is not None:
        with contextlib.suppress(ValueError, OSError):
            _say("the program is over, and this is what was recorded:")
            text.render(report, Console(file=sys.__stderr__, highlight=False, emoji=False, markup=False))
    traces = "trace.json.gz (opens in Perfetto)"
    if processes > 1 or not (folder / "trace.json.gz").exists():
        traces = f"traces of {processes} process{'es' if processes > 1 else ''} (trace*.json.gz, open in Perfetto)"
    _say(f"wrote {_shown(folder)}/: {traces}, report.json, report.html")


def _shown(folder: Path) -> str:
    try:
        return os.path.relpath(folder)
    except OSError:  # the program removed the folder that it ran in
        return str(folder)


def _say(line: str) -> None:
    """Print a line on the stderr that Python began with: the program may have replaced or closed ``sys.stderr``."""
    if sys.__stderr__ is not None:
        with contextlib.suppress(ValueError, OSError):
            print(f"syncscope: {line}", file=sys.__stderr__)
