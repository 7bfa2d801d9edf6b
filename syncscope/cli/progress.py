"""A bar on stderr while long work goes on."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from syncscope.cli.console import stderr
from syncscope.report.escape import terminal

if TYPE_CHECKING:
    from syncscope.analysis.analyze import Progress

LONG_BYTES = 10_000_000
"""A single file below this is read before a bar would be seen."""


@contextlib.contextmanager
def progress(files: Sequence[str]) -> Iterator[Progress | None]:
    """What to tell the progress to; ``None`` when stderr is no terminal or the work is short."""
    console = stderr()
    if not console.is_terminal or (len(files) < 2 and sum(map(_size, files)) < LONG_BYTES):
        yield None
        return
    from rich.progress import BarColumn, MofNCompleteColumn, SpinnerColumn, TextColumn, TimeElapsedColumn
    from rich.progress import Progress as Bar

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
