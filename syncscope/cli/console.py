"""Print on standard output and stderr. Colours only on a terminal; ``NO_COLOR`` and ``FORCE_COLOR`` are respected."""

from __future__ import annotations

import contextlib
import io
import os
import re
import sys
from collections.abc import Iterator, Sequence
from inspect import cleandoc
from typing import TYPE_CHECKING, TextIO

if TYPE_CHECKING:
    from rich.console import Console

    from syncscope.analysis.analyze import Progress

LONG_BYTES = 10_000_000
"""A single file smaller than this is read before a progress bar would be seen."""


def stdout() -> Console:
    """A console whose reader may go away (``| head``). The rest is then dropped; the exit code stays the command's."""
    from rich.console import Console

    class QuietConsole(Console):
        def on_broken_pipe(self) -> None:
            drop_stdout()

    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="replace")  # a name that the terminal cannot show does not end the command
    return QuietConsole(highlight=False, emoji=False, markup=False)


def stderr() -> Console:
    from rich.console import Console

    return Console(stderr=True, highlight=False, emoji=False, markup=False)


def may_be_terminal(stream: TextIO) -> bool:
    """Whether rich may take a stream for a terminal. Where it is none, rich need not be imported."""
    return stream.isatty() or any(os.environ.get(name) for name in ("FORCE_COLOR", "TTY_COMPATIBLE"))


def write_stdout(text: str) -> None:
    """Write text for other programs: unchanged, and in UTF-8 whatever the terminal's encoding."""
    try:
        sys.stdout.flush()
        sys.stdout.buffer.write(text.encode("utf-8", errors="replace"))
        sys.stdout.flush()
    except BrokenPipeError:
        drop_stdout()


def drop_stdout() -> None:
    """Discard what is still in the buffer, so that Python raises no error at exit."""
    drop(sys.stdout)


def drop(stream: TextIO) -> None:
    """Send what is still in a stream's buffer, and what comes, nowhere."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, stream.fileno())
    os.close(nowhere)


def open_what_is_closed() -> None:
    """Give a process that was started without standard output or stderr (``>&-``) one that goes nowhere, so that no
    file which is opened later takes its place."""
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, "w", encoding="utf-8"))  # noqa: SIM115


def unwrap(doc: str) -> list[str]:
    """The paragraphs of a docstring. Prose becomes one line that the terminal wraps; a paragraph with indented lines
    stays as it is."""
    paragraphs = cleandoc(doc).split("\n\n")
    return [text if re.search(r"^ ", text, re.MULTILINE) else " ".join(text.split()) for text in paragraphs]


@contextlib.contextmanager
def progress(files: Sequence[str]) -> Iterator[Progress | None]:
    """Show a bar on stderr. Yields the function that moves it, or ``None`` for short work or without a terminal."""
    short = len(files) < 2 and sum(map(_size, files)) < LONG_BYTES
    console = None if short or not may_be_terminal(sys.stderr) else stderr()
    if console is None or not console.is_terminal:
        yield None
        return
    from rich.progress import BarColumn, MofNCompleteColumn, SpinnerColumn, TextColumn, TimeElapsedColumn
    from rich.progress import Progress as Bar

    from syncscope.report.escape import terminal
    from syncscope.trace.remote import shown

    columns = (
        SpinnerColumn(),
        BarColumn(bar_width=20),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TextColumn("{task.description}", markup=False),
    )
    with Bar(*columns, console=console, transient=True) as bar:
        task = bar.add_task("", total=len(files))
        yield lambda path, done, total: bar.update(task, description=terminal(shown(path)), completed=done, total=total)


def _size(file: str) -> int:
    try:
        return os.stat(file).st_size
    except OSError:
        return 0
