"""What a process remembers of its recordings does not pass from one test to the next."""

from __future__ import annotations

import pytest

from syncscope.collect.profiler import KinetoWindow


@pytest.fixture(autouse=True)
def no_profiler_left_attached(monkeypatch: pytest.MonkeyPatch) -> None:
    """A profiler that an earlier test left attached to CUPTI, or just detached, changes what later windows do."""
    monkeypatch.setattr(KinetoWindow, "attached", False)
    monkeypatch.setattr(KinetoWindow, "ready_at", 0.0)
