"""The application: its commands in the order of ``--help``, and what becomes of their errors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from syncscope import __version__
from syncscope.cli.analyze import analyze
from syncscope.cli.check import check
from syncscope.cli.console import drop_stdout, flowing, write_stdout
from syncscope.cli.diff import diff
from syncscope.cli.errors import INTERRUPTED, exit_for
from syncscope.cli.hta import hta
from syncscope.cli.profile import ScriptCommand, profile
from syncscope.cli.report import report
from syncscope.cli.rules import rules

UsageError: Any = typer.BadParameter.__base__
"""Wrong usage as the parser finds it; typer prints it and exits with 2."""


class Commands(TyperGroup):
    """Every error of a command becomes one line and an exit code, never a traceback."""

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


def _add(command: Callable[..., None], **how: Any) -> None:
    app.command(help="\n\n".join(flowing(command.__doc__ or "")), **how)(command)


_add(profile, cls=ScriptCommand)
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
    """Find the waits a PyTorch program hides, say what each costs, and point at the line.

    [bold]profile[/bold] needs a GPU and PyTorch; everything else needs neither.
    """


def main() -> None:
    """Run the command line and exit."""
    app(prog_name="syncscope")
