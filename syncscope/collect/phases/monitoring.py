"""Python's own monitoring of what a function does (``sys.monitoring``, Python 3.12), one function at a time."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from types import CodeType
from typing import Any

TOOLS = (4, 3)
"""Numbers of tools that Python leaves to whoever comes first."""


class Tool:
    """One of those numbers, from ``take`` to ``free``, and the functions whose events are heard.

    What a callback raises reaches the program. A callback that returns ``DISABLE`` hears of that place no more, until
    the function's events are set anew.
    """

    def __init__(self) -> None:
        self._monitoring: Any = getattr(sys, "monitoring", None)
        self.DISABLE: object = getattr(self._monitoring, "DISABLE", None)
        self._number: int | None = None
        self._names: tuple[str, ...] = ()
        self._codes: list[CodeType] = []

    @property
    def exists(self) -> bool:
        """Whether this Python has any monitoring."""
        return self._monitoring is not None

    def take(self, callbacks: Mapping[str, Callable[..., object]]) -> bool:
        """Take a number, and let ``callbacks`` hear of events by their names. Returns whether one was free."""
        monitoring = self._monitoring
        if monitoring is None or self._number is not None:
            return self._number is not None
        for number in TOOLS:
            if monitoring.get_tool(number) is None:
                try:
                    monitoring.use_tool_id(number, "syncscope")
                except ValueError:  # another thread was faster
                    continue
                self._number, self._names = number, tuple(callbacks)
                for name, callback in callbacks.items():
                    monitoring.register_callback(number, getattr(monitoring.events, name), callback)
                return True
        return False

    def hear(self, code: CodeType, *names: str) -> None:
        """Hear of these events in ``code``, and of no others there. Does nothing without a number."""
        if self._number is None:
            return
        if not any(other is code for other in self._codes):
            self._codes.append(code)
        events = 0
        for name in names:
            events |= getattr(self._monitoring.events, name)
        self._monitoring.set_local_events(self._number, code, events)

    def free(self) -> None:
        """Hear of nothing any more, and give the number back. Does nothing the second time."""
        number, self._number = self._number, None
        codes, self._codes = self._codes, []
        if number is None:
            return
        for code in codes:
            self._monitoring.set_local_events(number, code, 0)
        for name in self._names:
            self._monitoring.register_callback(number, getattr(self._monitoring.events, name), None)
        self._monitoring.free_tool_id(number)
