"""The report of a program that is over, on stderr."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from syncscope.cli.program import say

if TYPE_CHECKING:
    from syncscope.schema.report import Report


def print_report(report: Report, title: str) -> None:
    """Print the report on the stderr that Python began with, in the words of ``syncscope analyze``."""
    from rich.console import Console

    from syncscope.report import text

    if sys.__stderr__ is None or sys.__stderr__.closed:
        return
    try:
        say(title)
        text.render(report, Console(file=sys.__stderr__, highlight=False, emoji=False, markup=False))
    except OSError:  # nobody reads it any more
        return
    except Exception as error:  # the program's status must not depend on its report
        say(f"error: the report could not be printed ({type(error).__name__}: {error})")
