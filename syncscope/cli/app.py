"""The application: its commands in the order of ``--help``, and the handling of their errors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from syncscope import __version__
from syncscope.cli.analyze import analyze
from syncscope.cli.check import check
from syncscope.cli.command import Command, adapt
from syncscope.cli.console import drop_stdout, unwrap, write_stdout
from syncscope.cli.diff import diff
from syncscope.cli.errors import INTERRUPTED, exit_for
from syncscope.cli.hta import hta
from syncscope.cli.light import import_help_writer
from syncscope.cli.profile import profile
from syncscope.cli.program import ScriptCommand
from syncscope.cli.report import report
from syncscope.cli.rules import rules
from syncscope.cli.watch import watch

UsageError: Any = typer.BadParameter.__base__
"""A usage error that the parser raises. typer prints it and exits with 2."""


class Commands(TyperGroup):
    """Turns every error of a command into one line and an exit code, without a traceback."""

    def get_params(self, ctx: Any) -> list[Any]:
        return adapt(super().get_params(ctx))

    def format_help(self, ctx: Any, formatter: Any) -> None:
        import_help_writer()
        super().format_help(ctx, formatter)

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


def _add(command: Callable[..., None], **options: Any) -> None:
    app.command(help="\n\n".join(unwrap(command.__doc__ or "")), **{"cls": Command, **options})(command)


_add(profile, cls=ScriptCommand)
_add(watch, cls=ScriptCommand)
for _command in (analyze, check, diff, report, hta, rules):
    _add(_command)


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
