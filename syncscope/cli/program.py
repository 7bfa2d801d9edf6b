"""What commands that run a user's program have in common: its arguments, its life and its end."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import threading
import weakref
from collections.abc import Callable, Set
from contextlib import AbstractContextManager
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Any

import typer
from typer.core import TyperOption

from syncscope import interrupts
from syncscope.cli.command import AnyCommand
from syncscope.cli.outliving import wait_for_processes, wait_for_threads

if TYPE_CHECKING:
    from syncscope.collect.annotations import Recorder

NOTHING_RECORDED = 3

LAUNCHERS = frozenset({"accelerate", "deepspeed", "lightning", "lightning_fabric", "torch"})
"""Packages whose modules, run with ``-m``, start a program that is not theirs."""


class ScriptCommand(AnyCommand):
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


def loader(name: str, arguments: list[str], *, is_module: bool) -> Callable[[], tuple[Any, Any]]:
    """A function that loads the program, to be run with ``arguments``. Raises a usage error for a missing file before
    anything runs."""
    from syncscope.collect.run import load_module, load_script

    if not is_module and not os.path.isfile(name):
        hint = " (to run a module, use -m)" if not name.endswith(".py") else ""
        why = "is a folder" if os.path.isdir(name) else "no such file"
        raise typer.BadParameter(f"{name}: {why}{hint}.", param_hint="SCRIPT")
    return lambda: load_module(name, arguments) if is_module else load_script(name)


ELSEWHERE = " Record on a machine with a GPU, then analyse the trace on any machine: syncscope analyze TRACE"


def require_gpu(advice: str = ELSEWHERE) -> None:
    """Exit with ``NOTHING_RECORDED`` where there is no GPU, before the program has begun."""
    from syncscope.collect.gpu import gpu_count

    if gpu_count() == 0:
        say(f"error: there is no GPU, so the script was not run.{advice}")
        raise typer.Exit(NOTHING_RECORDED)


def project_of(name: str, module: str | None) -> tuple[Path, tuple[str, ...]]:
    """The project's root and the installed packages that count as the user's, of the program that was named."""
    from syncscope.collect.paths import project_root
    from syncscope.policy import own_packages

    start = Path.cwd() if module else Path(name).resolve().parent
    named = {module.split(".")[0]} - LAUNCHERS if module else ()
    return project_root(start), (*own_packages(start), *named)


def stem_of(name: str, module: str | None) -> str:
    """The program's name in the names of files."""
    return module.split(".")[-1] if module else Path(name).stem


def run(
    recorder: Recorder,
    load: Callable[[], tuple[Any, Any]],
    arguments: list[str],
    conclude: Callable[[bool], int],
    around: AbstractContextManager[None] | None = None,
    stopped: Callable[[], bool] = lambda: False,
    recorded: Callable[[], Set[int]] = frozenset,
) -> int:
    """Run the program under the recorder, and return the exit status of the command; negative for a signal.

    The program runs inside ``around``. ``conclude(terminated)`` says what was recorded, and returns the status for a
    program that succeeds; ``terminated`` by SIGTERM, it should be quick. What the script leaves behind is waited for,
    unless it was interrupted, or ``stopped()`` by us. ``recorded()`` has the ids of other processes of the program that
    are still being recorded.
    """
    from syncscope.collect.annotations import begin, end
    from syncscope.collect.run import ScriptError, execute, report_syntax_error
    from syncscope.collect.undisturbed import own_warnings

    try:
        main, code = load()
    except ScriptError as error:
        say(f"error: {error}")
        return 2
    except SyntaxError as error:
        report_syntax_error(error)
        return 1

    def outlives(status: int) -> bool:
        return status >= 0 and not stopped()

    pid = os.getpid()
    with around or contextlib.nullcontext(), interrupts.as_python_does():
        begin(recorder)
        terminate = _on_terminate(recorder, conclude)
        status = execute(main, code, arguments)
        if os.getpid() == pid and outlives(status):
            try:
                wait_for_threads()
            except KeyboardInterrupt:
                status = -signal.SIGINT
    if os.getpid() != pid:
        return status  # a child that the program forked, which ends like the program
    try:
        end(recorder)
        if outlives(status):
            wait_for_processes(recorded())
        if terminate is not None and signal.getsignal(signal.SIGTERM) is terminate:
            signal.signal(signal.SIGTERM, interrupts.terminate)
        with contextlib.suppress(AttributeError, ValueError, OSError):  # Python tries again, and reports
            sys.stdout.flush()
        with own_warnings():
            concluded = conclude(False)
    except KeyboardInterrupt:  # the program is over, and the user does not wait for its reports
        return -signal.SIGINT
    except interrupts.Terminated:
        return -signal.SIGTERM
    finally:
        if signal.getsignal(signal.SIGTERM) is interrupts.terminate:
            signal.signal(signal.SIGTERM, signal.SIG_DFL)
    return status or concluded


def _on_terminate(recorder: Recorder, conclude: Callable[[bool], int]) -> Callable[..., None] | None:
    """On SIGTERM, write what was recorded and then end as the program would have.

    A handler that the program sets takes the place of ours, which is returned. Where SIGTERM is ignored, it stays so.
    Forked children have the default again: Python runs a handler only between its own instructions, so that one that
    waits for a lock might never end.
    """
    if signal.getsignal(signal.SIGTERM) is not signal.SIG_DFL:
        return None
    from syncscope.collect.undisturbed import own_warnings

    pid = os.getpid()

    def terminate(number: int, frame: FrameType | None) -> None:
        try:
            if os.getpid() == pid:
                recorder.close()
                with own_warnings():
                    conclude(True)
        finally:
            signal.signal(number, signal.SIG_DFL)
            os.kill(os.getpid(), number)

    signal.signal(signal.SIGTERM, terminate)
    _restore_in_forked_children(terminate)
    return terminate


def _restore_in_forked_children(handler: Callable[..., None]) -> None:
    """Put the default of SIGTERM back in forked children that still have ``handler``.

    One that comes before that is held back until then: Python would forget it, and who waits for the child would wait
    for ever. A hook on forks stays for the life of the process: it must not keep the recorder alive.
    """
    known, masks = weakref.ref(handler), threading.local()

    def is_ours() -> bool:
        found = known()
        return found is not None and signal.getsignal(signal.SIGTERM) is found

    def hold_back() -> None:
        masks.before = signal.pthread_sigmask(signal.SIG_BLOCK, (signal.SIGTERM,)) if is_ours() else None

    def let_through() -> None:
        before, masks.before = getattr(masks, "before", None), None
        if before is not None:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)

    def put_default_back() -> None:
        if is_ours():
            signal.signal(signal.SIGTERM, signal.SIG_DFL)
        let_through()

    if hasattr(os, "register_at_fork"):
        os.register_at_fork(before=hold_back, after_in_parent=let_through, after_in_child=put_default_back)


def shown(folder: Path) -> str:
    try:
        return os.path.relpath(folder)
    except OSError:  # the program removed the folder that it ran in
        return str(folder)


def say(line: str) -> None:
    """Print a line on the stderr that Python began with: the program may have replaced ``sys.stderr``. One that
    closed it wants no lines.

    What could break the line, or a terminal, is replaced: names are in it.
    """
    from syncscope.trace.source import one_line

    if sys.__stderr__ is not None:
        with contextlib.suppress(ValueError, OSError):
            print(f"syncscope: {one_line(line)}", file=sys.__stderr__)
