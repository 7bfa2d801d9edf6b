"""Windows with a profiler that only takes notes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from syncscope.collect import windows
from syncscope.collect.paths import Paths
from syncscope.collect.plan import Plan
from syncscope.collect.sites.stacks import Stacks
from syncscope.collect.sites.threads import Threads
from syncscope.collect.windows import Windows
from tests.collect.windows.doubles import LOG, Clock, FakeRecorder, FakeWindow, Torch


@pytest.fixture
def make(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[Plan], Windows]]:
    LOG.clear()
    monkeypatch.setattr(windows, "KinetoWindow", FakeWindow)
    monkeypatch.setattr(windows, "SiteRecorder", FakeRecorder)
    monkeypatch.setattr(FakeWindow, "broken", False)
    made: list[Windows] = []

    def build(
        plan: Plan, torch: Torch | None = None, census: Any = None, compilations: Callable[[], int] = lambda: 0
    ) -> Windows:
        stacks = Stacks(Paths(tmp_path))
        finished = lambda windows: LOG.append("done")  # noqa: E731
        given = {"census": census, "compilations": compilations}
        made.append(Windows(plan, torch or Torch(), stacks, Threads(), finished, **given))
        return made[-1]

    yield build
    for one in made:
        one.close("the test is over")


@pytest.fixture
def drive_at(make: Callable[[Plan], Windows], monkeypatch: pytest.MonkeyPatch) -> Callable[..., Windows]:
    """Windows after steps of 10 ms, which are of ``after`` once the profiler is there, and then of 10 again."""

    def run(plan: Plan, *after: float, clocks: Any = None, ready_ranks: Any = None) -> Windows:
        clock, left = Clock(), list(after)
        for module in ("windows", "settling", "bare.window"):
            monkeypatch.setattr(f"syncscope.collect.{module}.time", clock)
        one = make(plan)
        one._clocks, one._ready_ranks, one._name = clocks, ready_ranks, "train1"
        for _ in range(100):
            length = left.pop(0) if "prepare timed" in LOG and left else 10.0
            clock.now += int(length * 1e6)
            one.boundary()
            if one.finished:
                return one
        raise AssertionError("the windows never ended")

    return run
