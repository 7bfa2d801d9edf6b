"""Windows by the clock run on the main thread."""

from __future__ import annotations

import threading
import time
import warnings
from typing import Any

import pytest

from syncscope.collect.schedule import StopProgram
from syncscope.collect.timer import Timer


def spin(until: list[object], count: int) -> None:
    deadline = time.monotonic() + 20
    while len(until) < count and time.monotonic() < deadline:
        time.sleep(0.001)


def test_it_ticks_on_the_main_thread_until_closed() -> None:
    threads: list[object] = []
    timer = Timer(0.01, lambda: threads.append(threading.current_thread()))
    timer.open()
    spin(threads, 3)
    timer.close()
    assert threads[:3] == [threading.main_thread()] * 3


def test_a_tick_may_end_the_program() -> None:
    ticks: list[object] = []

    def tick() -> None:
        ticks.append(None)
        raise StopProgram(0)

    timer = Timer(0.01, tick)
    timer.open()
    with pytest.raises(SystemExit):
        spin([], 1)
    timer.close()
    assert ticks


def test_it_does_not_tick_between_a_wait_and_its_note(monkeypatch: pytest.MonkeyPatch) -> None:
    ticks: list[object] = []
    timer = Timer(0.001, lambda: ticks.append(None))

    def show(*_: Any, **__: Any) -> None:
        before = len(ticks)
        deadline = time.monotonic() + 0.05
        while time.monotonic() < deadline:
            time.sleep(0.001)
        during.append(len(ticks) - before)

    during: list[int] = []
    timer.open()
    spin(ticks, 1)
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        monkeypatch.setattr(warnings, "showwarning", show)
        warnings.warn("a wait", stacklevel=1)
    spin(ticks, 10)
    timer.close()
    assert during == [0] and len(ticks) >= 10
