"""Calls of Python functions that hooks add to a step: the same on every machine, where times are not."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Iterator
from types import FrameType
from typing import Any


@contextlib.contextmanager
def counted_calls() -> Iterator[list[int]]:
    """Counts the Python functions that this thread calls, generators that go on included, in the list's only entry."""
    count = [0]

    def heard(frame: FrameType, event: str, arg: Any) -> None:
        count[0] += event == "call"

    sys.setprofile(heard)
    try:
        yield count
    finally:
        sys.setprofile(None)


def calls_of(run: Callable[[], object]) -> int:
    """How many Python functions ``run`` calls on this thread, itself included."""
    with counted_calls() as count:
        run()
    return count[0] - 1  # the end of the block
