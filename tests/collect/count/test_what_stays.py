"""Warnings, modes and random numbers of the program stay its own while it is counted."""

from __future__ import annotations

import random
import warnings
from typing import Any

from syncscope.collect.sites.sync_debug import MESSAGE, sync_debug_mode
from tests.collect.count.program import MODE, MS, Phase, only, running, wait


def test_the_programs_filters_and_what_it_catches_are_its_own() -> None:
    before = list(warnings.filters)
    shown: list[Any] = []
    with warnings.catch_warnings():
        warnings.showwarning = lambda *arguments, **rest: shown.append(arguments[0])
        with running(lambda: 0.5) as run:
            run.enter(Phase(1))
            warnings.simplefilter("error")
            wait()
            warnings.simplefilter("always")
            warnings.warn("the program's", stacklevel=1)
            wait()
            assert sum(each.count for each in run.counter.waits()) == 2
    assert [str(each) for each in shown] == ["the program's"]
    assert list(warnings.filters) == before


def test_switching_does_not_show_again_what_python_shows_once() -> None:
    with running(random.Random(1).random) as run, warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("default")
        run.enter(Phase(1))
        for _ in range(500):
            for _ in range(50):
                wait()
            warnings.warn("once a line", stacklevel=1)
            run.step(MS)
        assert run.counter._switch.turns > 3
    assert len(caught) == 1


def test_a_program_that_wants_the_warnings_has_them_in_steps_that_are_not_counted_too() -> None:
    with running(lambda: 0.5) as run, warnings.catch_warnings(record=True) as caught:
        run.torch._C._cuda_set_sync_debug_mode(1)
        run.enter(Phase(1))
        for _ in range(30):
            for _ in range(50):
                wait()
            run.step(MS)
        assert run.counter._switch.turns > 0
        run.torch._C._cuda_set_sync_debug_mode(0)
    assert [str(each.message).startswith(MESSAGE) for each in caught] == [True] * 30 * 50


def test_a_programs_error_mode_is_left_alone() -> None:
    with running() as run:
        run.torch._C._cuda_set_sync_debug_mode(2)
        run.counter.suspend()
        assert MODE[0] == 2
        run.counter.resume()
        assert MODE[0] == 2
        run.torch._C._cuda_set_sync_debug_mode(0)


def test_other_listeners_still_hear_while_counting_does_not() -> None:
    with running() as run:
        heard: list[int] = []

        def listener(frame: Any) -> None:
            heard.append(frame.f_lineno)

        run.counter.suspend()
        sync_debug_mode.listen(run.torch, listener)
        read()
        sync_debug_mode.unlisten(listener)
        assert len(heard) == 1 and not run.counting
        run.counter.resume()
        read()
        assert only(run).count == 1


def test_the_programs_random_numbers_are_its_own() -> None:
    random.seed(7)
    alone = [random.random() for _ in range(3000)]
    random.seed(7)
    with running() as run:
        run.enter(Phase(1))
        drawn = []
        for _ in range(3000):
            for _ in range(50):
                wait()
            run.step(MS)
            drawn.append(random.random())
        assert run.counter._switch.turns > 0  # steps were drawn
    assert drawn == alone


def read() -> None:
    wait()
