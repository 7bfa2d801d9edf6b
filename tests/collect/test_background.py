"""Work beside the program comes often enough, and what it writes is never old."""

from __future__ import annotations

import itertools
import sys
import threading
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from syncscope.collect import background, counting
from syncscope.collect.background import Background
from syncscope.collect.counting import LONGEST_TICK_SECONDS, RunCount
from syncscope.collect.paths import Paths
from syncscope.collect.sites import sources as sources_module
from syncscope.collect.sites.sources import Sources
from syncscope.collect.sites.stacks import Stacks

SECOND = 1_000_000_000


def test_work_that_takes_long_comes_again_all_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    spent = [0]

    def thread_time_ns() -> int:
        spent[0] += SECOND
        return spent[0]

    clock = SimpleNamespace(monotonic=time.monotonic, thread_time_ns=thread_time_ns)
    monkeypatch.setattr(background, "time", clock)
    turns: list[int] = []
    enough = threading.Event()

    def work() -> None:
        turns.append(len(turns))
        if len(turns) == 3:
            enough.set()

    one = Background(0.001, work, 0.002, longest=0.002)
    one.open()
    try:
        assert enough.wait(30)
    finally:
        one.close()


@pytest.mark.parametrize("writing_s", [0.01, 0.5, 2.0, 4.0])
def test_the_last_state_is_never_older_than_ten_seconds(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, writing_s: float
) -> None:
    now = [100 * SECOND]
    monkeypatch.setattr(
        counting, "time", SimpleNamespace(perf_counter_ns=lambda: now[0], thread_time_ns=lambda: now[0])
    )
    states: list[tuple[int, int]] = []

    def write() -> None:
        began = now[0]
        now[0] += int(writing_s * SECOND)
        states.append((began, now[0]))

    count: Any = RunCount(Paths(tmp_path), "run", write)
    count._began_ns = count._written_ns = now[0]
    while now[0] < 200 * SECOND:
        now[0] += int(LONGEST_TICK_SECONDS * SECOND)
        count._tick()
    first = states[0][1]
    oldest = max(written - began for (began, _), (_, written) in itertools.pairwise(states))
    assert first <= 110 * SECOND or writing_s > 1  # the first one does not know yet how long it takes
    assert oldest <= 10 * SECOND
    assert len(states) >= 10


@pytest.mark.parametrize(("cpu_ms", "writing_ms", "apart_s"), [(0.5, 0.5, 2), (4, 4, 4), (15, 15, 8), (1, 300, 2)])
def test_a_state_that_is_cheap_to_write_is_young(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, cpu_ms: float, writing_ms: float, apart_s: float
) -> None:
    now, spent = [100 * SECOND], [0]
    clock = SimpleNamespace(perf_counter_ns=lambda: now[0], thread_time_ns=lambda: spent[0])
    monkeypatch.setattr(counting, "time", clock)
    states: list[int] = []

    def write() -> None:
        states.append(now[0])
        now[0] += int(writing_ms * SECOND / 1000)
        spent[0] += int(cpu_ms * SECOND / 1000)

    count: Any = RunCount(Paths(tmp_path), "run", write)
    count._began_ns = count._written_ns = now[0]
    while now[0] < 160 * SECOND:
        now[0] += SECOND // 2
        count._tick()
    assert states[0] <= 103 * SECOND
    apart = [(later - sooner) / SECOND for sooner, later in itertools.pairwise(states)]
    assert all(apart_s - 0.5 <= one <= apart_s + 1 for one in apart)


def test_each_line_of_source_is_looked_up_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    looked: list[str] = []

    def getlines(file: str) -> list[str]:
        looked.append(file)
        return ["one\n", "two\n", "three\n", "four\n", "five\n"]

    monkeypatch.setattr(sources_module, "linecache", SimpleNamespace(getlines=getlines))
    stacks = Stacks(Paths(tmp_path))
    sources = Sources(stacks)
    space: dict[str, Any] = {"take": lambda: stacks.take(sys._getframe(1))}
    for line in (1, 4):
        exec(compile("\n" * (line - 1) + "take()\n", str(tmp_path / "a.py"), "exec"), space)
        frames, _ = stacks.resolve()
        found = sources.of(frames)
        assert sources.of(frames) == found
    assert found["a.py"] == {str(n): text for n, text in enumerate(("one", "two", "three", "four", "five"), 1)}
    assert looked.count(str(tmp_path / "a.py")) == 2
