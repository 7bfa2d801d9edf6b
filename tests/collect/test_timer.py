"""Windows by the clock run on the main thread."""

from __future__ import annotations

import signal
import sys
import threading
import time
import warnings
from collections.abc import Iterator
from typing import Any

import pytest

from syncscope.collect import schedule, windows
from syncscope.collect.count import counter
from syncscope.collect.phases import checkpoints, signals, tracker
from syncscope.collect.schedule import StopProgram
from syncscope.collect.timer import Timer, raise_on_main_thread


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


def test_ctrl_c_in_a_tick_reaches_the_program_and_an_error_of_ours_does_not(capfd: pytest.CaptureFixture[str]) -> None:
    ticks: list[object] = []

    def tick() -> None:
        ticks.append(None)
        if len(ticks) == 1:
            raise ValueError("ours")
        if len(ticks) == 2:
            raise KeyboardInterrupt

    timer = Timer(0.01, tick)
    timer.open()
    with pytest.raises(KeyboardInterrupt):
        spin([], 1)
    spin(ticks, 4)
    timer.close()
    assert len(ticks) >= 4 and capfd.readouterr().err == ""


def test_a_tick_in_the_midst_of_closing_does_not_hang() -> None:
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        for _ in range(3000):
            timer = Timer(0.0, lambda: None)
            timer.open()
            timer.close()
    finally:
        sys.setswitchinterval(before)


@pytest.fixture
def heeds_interrupts() -> Iterator[None]:
    """Signals interrupt, also where the tests run in a shell's background, which has them ignored."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("heeds_interrupts")
def test_no_interrupt_is_lost_in_a_tick(capfd: pytest.CaptureFixture[str]) -> None:
    timer = Timer(0.0, lambda: time.sleep(0.0001))
    timer.open()
    for number in range(200):
        ready = threading.Event()
        sender = threading.Thread(target=interrupt, args=(number, ready))
        sender.start()
        with pytest.raises(KeyboardInterrupt):
            spin_when(ready)
        sender.join()
    timer.close()
    assert capfd.readouterr().err == ""


def spin_when(ready: threading.Event) -> None:
    ready.set()
    spin([], 1)


def interrupt(number: int, ready: threading.Event) -> None:
    """Interrupt the main thread a little later each time, by turns with a signal and from this thread."""
    ready.wait()
    time.sleep(number * 1e-5)
    if number % 2:
        signal.raise_signal(signal.SIGINT)
    else:
        raise_on_main_thread(KeyboardInterrupt)


@pytest.mark.parametrize("file", [counter.__file__, tracker.__file__, schedule.__file__, windows.__file__])
def test_it_does_not_tick_in_the_middle_of_other_work_of_ours(file: str) -> None:
    ticks: list[object] = []
    timer = Timer(0.001, lambda: ticks.append(None))
    timer.open()
    spin(ticks, 1)
    names: dict[str, Any] = {}
    exec(compile("def work(then):\n    then()", file, "exec"), names)
    during: list[int] = []

    def then() -> None:
        before, deadline = len(ticks), time.monotonic() + 0.05
        while time.monotonic() < deadline:
            time.sleep(0.001)
        during.append(len(ticks) - before)

    names["work"](then)
    spin(ticks, len(ticks) + 3)
    timer.close()
    assert during == [0]


@pytest.mark.parametrize("file", [signals.__file__, checkpoints.__file__])
def test_it_ticks_in_what_of_the_program_is_followed_as_a_whole(file: str) -> None:
    names: dict[str, Any] = {}
    exec(compile("def call(then):\n    then()", file, "exec"), names)
    ticks: list[object] = []
    timer = Timer(0.001, lambda: ticks.append(None))
    timer.open()
    names["call"](lambda: spin(ticks, 3))
    timer.close()
    assert len(ticks) >= 3


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
