"""What goes wrong, as one line on stderr and an exit code."""

from __future__ import annotations

import os

import typer
from rich.text import Text

from syncscope.cli.console import stderr
from syncscope.report.escape import terminal

USAGE = 2
UNREADABLE = 3
INTERRUPTED = 130
TRACEBACK = "SYNCSCOPE_TRACEBACK"
"""Environment variable: set, an internal error shows where it comes from."""


class CommandError(Exception):
    """Ends a command: ``str()`` is the line, ``exit_code`` 2 for wrong usage, 3 for what cannot be read."""

    def __init__(self, message: str, exit_code: int) -> None:
        super().__init__(message)
        self.exit_code = exit_code


def exit_for(error: Exception) -> typer.Exit:
    """Report an error on stderr; the exit it ends in.

    An internal error ends in 3 like a trace that cannot be read: it must look neither clean nor like a finding.
    """
    if isinstance(error, CommandError):
        return _exit(str(error), error.exit_code)
    from syncscope.policy import BaselineError, ConfigError

    if isinstance(error, ConfigError):
        return _exit(str(error), USAGE)
    if isinstance(error, BaselineError):
        return _exit(str(error), UNREADABLE)
    from syncscope.analysis.engine import EngineError
    from syncscope.trace import TraceError

    if isinstance(error, TraceError | EngineError):
        return _exit(str(error), UNREADABLE)
    from syncscope.trace.extras import MissingExtra

    if isinstance(error, MissingExtra):
        return _exit(str(error), USAGE)
    if os.environ.get(TRACEBACK):
        raise error
    return _exit(f"internal error: {type(error).__name__}: {error} ({TRACEBACK}=1 shows where)", UNREADABLE)


def tell(line: str) -> None:
    """One line on stderr of what went wrong."""
    stderr().print(Text.assemble(("error: ", "bold red"), terminal(line)), soft_wrap=True)


def _exit(line: str, code: int) -> typer.Exit:
    tell(line)
    return typer.Exit(code)
