"""Calls of Python functions that hooks add to a step: the same on every machine, where times are not."""

from __future__ import annotations

import sys
from types import FrameType
from typing import Any


class CallCount:
    """Counts the Python functions that this thread calls from ``start`` to ``stop``, and generators that go on."""

    def __init__(self) -> None:
        self.calls = 0

    def start(self) -> None:
        sys.setprofile(self._heard)

    def stop(self) -> None:
        sys.setprofile(None)
        self.calls -= 1  # this one

    def _heard(self, frame: FrameType, event: str, arg: Any) -> None:
        self.calls += event == "call"
