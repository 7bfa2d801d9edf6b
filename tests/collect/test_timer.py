"""Windows by the clock run on the main thread."""

from __future__ import annotations

import threading
import time

import pytest

from syncscope.collect.timer import Timer
from syncscope.collect.windows import StopProgram


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
