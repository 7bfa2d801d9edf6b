"""How much of a report a terminal or a page of text shows."""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from syncscope.schema.findings import Frame

MOST_CARDS = 5
"""Findings that are shown in full unless all are asked for."""

Link = Callable[[Frame], str | None]
"""The address that a terminal opens for a place; ``None`` where there is no such file here."""


class View(msgspec.Struct, frozen=True):
    verbose: bool = False
    """Show all findings in full, with what lies behind their figures."""
    top: int | None = None
    """Show no more findings than this."""
    link: Link | None = None
    """``None`` where the output is no terminal."""


WHOLE = View()
"""What is shown unless asked otherwise."""
