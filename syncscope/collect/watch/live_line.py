"""One line at the bottom of the terminal that the program leaves alone.

The line is below the part of the terminal that scrolls, as apt's progress bar is. What the program prints, and progress
bars of its own, stay in the part above, whether Python, C++ or a child process writes them.
"""

from __future__ import annotations

import os
import sys

from syncscope.collect.watch.measures import Measures

LEAST_ROWS = 4
SAVE, RESTORE = "\0337", "\0338"
DOWN, UP = "\033D", "\033[1A"
"""Neither changes the column; the first scrolls in the last row."""


class LiveLine:
    """Shows ``text`` at the bottom of the terminal that stderr is. Does nothing where stderr is not a terminal."""

    def __init__(self, descriptor: int | None = None) -> None:
        self._descriptor = _stderr() if descriptor is None else descriptor
        self._device = _terminal(self._descriptor)
        self._size: tuple[int, int] | None = None
        """Columns and rows when the line was shown last; ``None`` while it is not shown."""
        self._pid = os.getpid()

    @property
    def possible(self) -> bool:
        """Whether stderr is a terminal that moves its cursor, and this process is the first of its node to show it."""
        return (
            self._device is not None
            and os.environ.get("TERM", "dumb") != "dumb"
            and os.environ.get("LOCAL_RANK", "0") == "0"
        )

    def show(self, text: str) -> None:
        """Show ``text`` in place of what was shown."""
        size = self._current_size()
        if size is None:
            return
        columns, rows = size
        shown = "".join(character if character.isprintable() else "?" for character in text)[: columns - 1]
        begin = ""
        if size != self._size:
            # Down and up first: the cursor may be in the last row, which is ours from now on.
            begin = f"{DOWN}{UP}{SAVE}\033[1;{rows - 1}r{RESTORE}"
        self._size = size
        self._write(f"{begin}{SAVE}\033[{rows};1H\033[2K{shown}{RESTORE}")

    def close(self) -> None:
        """Give the line back. Does nothing in a forked child."""
        if self._size is not None and os.getpid() == self._pid and self._current_size() is not None:
            rows = self._size[1]
            self._write(f"{SAVE}\033[{rows};1H\033[2K\033[r{RESTORE}")
        self._size = None

    def _current_size(self) -> tuple[int, int] | None:
        """Columns and rows, ``None`` where the terminal is gone, too small, or another job's at the moment."""
        if not self.possible or _terminal(self._descriptor) != self._device or os.getpid() != self._pid:
            return None  # the program may have closed stderr and opened another file under its number
        try:
            if os.tcgetpgrp(self._descriptor) != os.getpgrp():
                return None
            columns, rows = os.get_terminal_size(self._descriptor)
        except OSError:
            return None
        return (columns, rows) if rows >= LEAST_ROWS else None

    def _write(self, text: str) -> None:
        try:
            os.write(self._descriptor, text.encode())
        except OSError:
            self._device = None


def _stderr() -> int:
    try:
        return sys.__stderr__.fileno() if sys.__stderr__ is not None else -1
    except (OSError, ValueError):
        return -1


def _terminal(descriptor: int) -> int | None:
    """The device number of the terminal behind ``descriptor``, ``None`` where it is not a terminal."""
    try:
        if not hasattr(os, "tcgetpgrp") or not os.isatty(descriptor):
            return None
        return os.fstat(descriptor).st_rdev
    except OSError:
        return None


def text_of(measures: Measures) -> str:
    """``syncscope: train 12,345 steps, 2.1 waits a step · 4 lines wait, 1 new · cost 0.31 %``"""
    parts = []
    if (main := measures.main) is not None:
        waits = f", {main.waits_per_step:.3g} waits a step" if main.waits_per_step is not None else ""
        parts.append(f"{main.name} {main.steps:,} steps{waits}")
    lines = f"{measures.lines:,} {'line waits' if measures.lines == 1 else 'lines wait'}"
    parts.append(f"{lines}, {measures.new_lines:,} new" if measures.new_lines else lines)
    if measures.cost is not None:
        parts.append(f"cost {100 * measures.cost:.2f} %")
    return "syncscope: " + " · ".join(parts)
