"""Where the commands print. Colours only on a terminal; ``NO_COLOR`` and ``FORCE_COLOR`` are respected."""

from __future__ import annotations

import io
import os
import re
import sys
from inspect import cleandoc

from rich.console import Console


class QuietConsole(Console):
    """A console whose reader may go away (``| head``): the rest is dropped, and the exit code stays the command's."""

    def on_broken_pipe(self) -> None:
        drop_stdout()


def stdout() -> Console:
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="replace")  # a name that the terminal cannot show does not end the command
    return QuietConsole(highlight=False, emoji=False, markup=False)


def stderr() -> Console:
    return Console(stderr=True, highlight=False, emoji=False, markup=False)


def write_stdout(text: str) -> None:
    """Write text for other programs to read: as it is, in UTF-8 whatever the terminal's encoding."""
    try:
        sys.stdout.flush()
        sys.stdout.buffer.write(text.encode("utf-8", errors="replace"))
        sys.stdout.flush()
    except BrokenPipeError:
        drop_stdout()


def drop_stdout() -> None:
    """Send what is still to be written nowhere, so that nothing complains at exit."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, sys.stdout.fileno())
    os.close(nowhere)


def flowing(doc: str) -> list[str]:
    """The paragraphs of a docstring: prose as one line for the terminal to wrap, one with indented lines as it is."""
    paragraphs = cleandoc(doc).split("\n\n")
    return [text if re.search(r"^ ", text, re.MULTILINE) else " ".join(text.split()) for text in paragraphs]
