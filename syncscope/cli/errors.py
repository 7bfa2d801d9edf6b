"""Report an error as one line on stderr and an exit code."""

from __future__ import annotations

import errno
import os
import sys

import typer

from syncscope.cli.console import drop, drop_stdout, stderr

USAGE = 2
UNREADABLE = 3
INTERRUPTED = 130
FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO)
"""What writing fails with where there is no room. Files that we write ourselves name themselves in the error."""

TRACEBACK = "SYNCSCOPE_TRACEBACK"
"""Environment variable. When it is set, an internal error prints its traceback."""


class CommandError(Exception):
    """Ends a command. ``str()`` is the line; ``exit_code`` is 2 for wrong usage, a configuration or a baseline, 3
    for a trace or a saved report that cannot be read."""

    def __init__(self, message: str, exit_code: int) -> None:
        super().__init__(message)
        self.exit_code = exit_code


def exit_for(error: Exception) -> typer.Exit:
    """Print an error on stderr, and return the exit to raise.

    The exit code of an internal error is 3, as for a trace that cannot be read, so that it looks neither clean nor like
    a finding.
    """
    if isinstance(error.__cause__, KeyboardInterrupt):  # before Python 3.12, Ctrl-C in an import while a class is made
        return typer.Exit(INTERRUPTED)
    if isinstance(error, OSError) and error.filename is None and error.errno in FULL:
        drop_stdout()
        return _exit(f"standard output: {error.strerror}", USAGE)
    if isinstance(error, CommandError):
        return _exit(str(error), error.exit_code)
    from syncscope.policy import BaselineError, ConfigError

    if isinstance(error, ConfigError | BaselineError):
        return _exit(str(error), USAGE)
    from syncscope.analysis.engine import EngineError
    from syncscope.trace import TraceError

    if isinstance(error, TraceError | EngineError):
        return _exit(str(error), UNREADABLE)
    from syncscope.trace.extras import MissingExtra

    if isinstance(error, MissingExtra):
        return _exit(str(error), USAGE)
    if os.environ.get(TRACEBACK):
        raise error
    return _exit(f"internal error: {type(error).__name__}: {error} ({TRACEBACK}=1 prints the traceback)", UNREADABLE)


def print_error(line: str) -> None:
    """Print one line of error on stderr; a terminal has it wrapped between words."""
    from rich.text import Text

    from syncscope.report.escape import terminal

    console = stderr()
    console.print(Text.assemble(("error: ", "bold red"), terminal(line)), soft_wrap=not console.file.isatty())


def _exit(line: str, code: int) -> typer.Exit:
    try:
        print_error(line)
    except OSError:  # the exit code says it, too
        drop(sys.stderr)
    return typer.Exit(code)
