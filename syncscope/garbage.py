"""When Python looks for objects that only refer to each other, in commands that run no program but ours."""

from __future__ import annotations

import atexit
import contextlib
import gc
from collections.abc import Iterator

COLLECT_AFTER = 100_000
"""Objects made and not yet freed after which Python looks for cycles; usually 700 to 2,000. An analysis makes millions
of objects and hardly a cycle: looking took a tenth of the time of what follows the reading of 1 GB."""


@contextlib.contextmanager
def collect_rarely() -> Iterator[None]:
    """Look for cycles after ``COLLECT_AFTER`` objects."""
    before = gc.get_threshold()
    gc.set_threshold(COLLECT_AFTER, *before[1:])
    try:
        yield
    finally:
        gc.set_threshold(*before)


def end_at_once() -> None:
    """Do not look for cycles when Python ends, either: that takes a tenth of a short command."""
    atexit.register(gc.freeze)
