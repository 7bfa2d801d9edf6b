"""The application: its commands in the order of ``--help``, and the handling of their errors."""

from __future__ import annotations

from importlib import import_module
from typing import Annotated, Any

import typer
from typer.core import TyperCommand, TyperGroup

from syncscope import __version__
from syncscope.cli.command import Command, adapt
from syncscope.cli.console import drop_stdout, unwrap, write_stdout
from syncscope.cli.errors import INTERRUPTED, exit_for
from syncscope.cli.light import import_help_writer
from syncscope.garbage import end_at_once

COMMANDS = {
    "profile": "Run a program and record where it waits for the GPU.",
    "watch": "Run a program and count where it waits for the GPU, from its first step to its last.",
    "analyze": "Show where a program waits, what each wait costs, what its fix saves, and how to remove it.",
    "check": "Fail when traces or saved reports have unexpected waits: the gate for CI.",
    "diff": "Show what changed between two recordings: findings that are new, fixed, or that occur more or less often.",
    "report": "Write the HTML report, or the trace with its findings, from a trace or from a saved JSON report.",
    "hta": "Run the analyses of HolisticTraceAnalysis (HTA) on the columns that syncscope reads, and print their "
    "tables.",
    "rules": "List the rules, or explain one.",
}
"""The commands in the order of ``--help``, and what it says of them. Each is the function of its name in the module of
its name, which is imported when it is called."""

RUN_PROGRAMS = ("profile", "watch")

UsageError: Any = typer.BadParameter.__base__
"""A usage error that the parser raises. typer prints it and exits with 2."""


class Commands(TyperGroup):
    """Makes the command that is called, and turns every error of it into one line and an exit code, without a
    traceback."""

    def __init__(self, **attributes: Any) -> None:
        super().__init__(**attributes)
        self.commands = {name: TyperCommand(name, help=summary) for name, summary in COMMANDS.items()}
        self._lists = False

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        if cmd_name not in COMMANDS or self._lists:
            return super().get_command(ctx, cmd_name)
        return make_command(cmd_name)

    def get_params(self, ctx: Any) -> list[Any]:
        return adapt(super().get_params(ctx))

    def format_help(self, ctx: Any, formatter: Any) -> None:
        import_help_writer()
        end_at_once()
        self._lists = True
        try:
            super().format_help(ctx, formatter)
        finally:
            self._lists = False

    def make_context(self, *args: Any, **extra: Any) -> Any:
        try:
            return super().make_context(*args, **extra)
        except KeyboardInterrupt:
            raise typer.Exit(INTERRUPTED) from None

    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except (typer.Exit, typer.Abort, UsageError):
            raise
        except KeyboardInterrupt:
            raise typer.Exit(INTERRUPTED) from None
        except BrokenPipeError:
            drop_stdout()
            raise typer.Exit from None
        except Exception as error:
            raise exit_for(error) from None


app = typer.Typer(
    cls=Commands,
    name="syncscope",
    no_args_is_help=True,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def make_command(name: str) -> Any:
    """One of :data:`COMMANDS` with its parameters."""
    function = getattr(import_module(f"syncscope.cli.{name}"), name)
    kind: type[TyperCommand] = Command
    if name in RUN_PROGRAMS:
        from syncscope.cli.program import ScriptCommand as kind
    alone = typer.Typer(add_completion=False, rich_markup_mode="rich")
    alone.command(name, cls=kind, help="\n\n".join(unwrap(function.__doc__ or "")))(function)
    return typer.main.get_command(alone)


def _version(wanted: bool) -> None:
    if wanted:
        write_stdout(f"syncscope {__version__}\n")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version and exit.")
    ] = False,
) -> None:
    """Find the waits that a PyTorch program hides, what each costs, and the line it is on.

    [bold]To begin[/bold]

      syncscope profile train.py            record a program, on a GPU
      syncscope analyze syncscope-train/    read the report, anywhere
      syncscope analyze trace.json.gz       the same for a torch.profiler trace
      syncscope check syncscope-train/      fail where it waits, for CI

    [bold]profile[/bold] and [bold]watch[/bold] need a GPU and PyTorch. The other commands need neither.
    """


def main() -> None:
    """Run the command line and exit."""
    app(prog_name="syncscope")
