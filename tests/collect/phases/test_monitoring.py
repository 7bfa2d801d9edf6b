"""Numbers of tools of ``sys.monitoring``, which two threads of ours take and give back."""

from __future__ import annotations

from types import CodeType, SimpleNamespace

import pytest

from syncscope.collect.phases.monitoring import TOOLS, Tool

CODE = (lambda: None).__code__


class Monitoring:
    """Stands for ``sys.monitoring``. Another thread frees ``tool`` in the midst of a call, once it is ``freed_by``."""

    DISABLE = object()

    def __init__(self, freed_by: str) -> None:
        self.freed_by = freed_by
        self.tool: Tool | None = None
        self.used: set[int] = set()

    @property
    def events(self) -> SimpleNamespace:
        self._free("events")
        return SimpleNamespace(JUMP=1)

    def _free(self, where: str) -> None:
        if where == self.freed_by and self.tool is not None:
            tool, self.tool = self.tool, None
            tool.free()

    def get_tool(self, number: int) -> str | None:
        return "syncscope" if number in self.used else None

    def use_tool_id(self, number: int, name: str) -> None:
        self.used.add(number)

    def free_tool_id(self, number: int) -> None:
        self.used.remove(number)

    def register_callback(self, number: int, event: int, callback: object) -> None: ...

    def set_local_events(self, number: int, code: CodeType, events: int) -> None:
        if not isinstance(number, int):
            raise TypeError("an integer is required")
        if events:
            self._free("set_local_events")
        if number not in self.used:
            raise ValueError(f"tool {number} is not in use")


@pytest.mark.parametrize("freed_by", ["events", "set_local_events"])
def test_a_tool_that_another_thread_frees_hears_nothing_and_raises_nothing(freed_by: str) -> None:
    monitoring = Monitoring(freed_by)
    tool = Tool()
    tool._monitoring = monitoring
    assert tool.take({"JUMP": print}) and monitoring.used == {TOOLS[0]}
    monitoring.tool = tool
    tool.hear(CODE, "JUMP")
    assert monitoring.used == set() and monitoring.tool is None
