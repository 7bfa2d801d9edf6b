"""Which steps are bare, and what compilation does to windows."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from syncscope.collect import windows
from syncscope.collect.plan import Plan
from syncscope.collect.windows import Windows
from tests.collect.windows.doubles import LOG, SMALL


def test_steps_in_which_something_intruded_are_not_bare_steps(make: Callable[[Plan], Windows]) -> None:
    one = make(Plan(warmup=0, settle=0, bare=3, steps=1, attribution=0))
    one.boundary()
    for intruder in (None, "evaluate", "checkpoint", None):
        one.boundary(intruder=intruder)
        assert one.recorded.bare is None
    one.boundary(intruder=None)
    assert one.recorded.bare is not None and len(one.recorded.bare.steps_ns) == 3
    assert LOG.count("sync") == 2


def test_a_bare_window_of_nothing_but_intruded_steps_ends(make: Callable[[Plan], Windows]) -> None:
    one = make(Plan(warmup=0, settle=0, bare=2, steps=1, attribution=0))
    for _ in range(9):
        assert one.recorded.bare is None
        one.boundary(intruder="epoch end")
    assert one.recorded.bare is not None and len(one.recorded.bare.steps_ns) == 8


def test_steps_in_which_something_is_compiled_are_not_bare_steps(make: Any) -> None:
    compiled = [0]
    one = make(SMALL, compilations=lambda: compiled[0])
    for number in range(1, 12):
        compiled[0] += number == 3  # in the second bare step
        one.boundary()
    bare = one.recorded.bare
    assert bare is not None
    assert [step.reason for step in bare.set_aside] == ["compilation"]
    assert len(bare.steps_ns) == 2


def test_a_window_in_which_something_is_compiled_is_recorded_again_but_not_for_ever(make: Any) -> None:
    steps = [0]
    one = make(Plan(warmup=0, bare=0, steps=2, attribution=1, settle=0), compilations=lambda: steps[0])
    while not one.finished:
        steps[0] += 1  # in each step
        one.boundary()
    assert LOG.count("start timed") == 1 + windows.RECORDED_ANEW
    assert LOG.count("start attribution") == 1
    assert one.recorded.timed is not None


def test_a_window_in_which_nothing_is_compiled_takes_the_place_of_the_one_before(make: Any) -> None:
    compiled = [0]
    one = make(Plan(warmup=0, bare=0, steps=2, attribution=1, settle=0), compilations=lambda: compiled[0])
    first = None
    while not one.finished:
        compiled[0] += LOG.count("start timed") == 1 and one.recorded.timed is None
        one.boundary()
        first = first or one.recorded.timed
    assert LOG.count("start timed") == 2
    assert first is not None
    assert one.recorded.timed is not first
