"""Which lines need a look, and in which steps they are expected."""

from __future__ import annotations

from typing import Any

import pytest

from syncscope.collect.looks.wanted import Expected, choose_steps, unknown_stacks
from syncscope.schema.counting import CountedWait, RecordedPhase, RecordedRun
from syncscope.schema.recording import RecordedFrame

TRAIN = RecordedPhase(name="train", kind="train", steps=1_000, counted_steps=1_000)


def wait(stack: int = 0, phase: int = 0, **more: Any) -> CountedWait:
    usual: dict[str, Any] = {"kind": "warning", "count": 10, "steps": 10, "first_step": 5, "last_step": 95}
    return CountedWait(phase=phase, stack=stack, **{**usual, **more})


def run(*waits: CountedWait, phases: tuple[RecordedPhase, ...] = (TRAIN,)) -> RecordedRun:
    return RecordedRun(id="a", started_ns=0, time_ns=10**10, complete=False, phases=phases, waits=waits)


def frame(expression: str | None) -> RecordedFrame:
    return RecordedFrame(file="a.py", line=1, function="f", expression=expression)


def unknown(expression: str | None, **more: Any) -> set[int]:
    return unknown_stacks(run(wait(**more)), [frame(expression)], [[0]], set())


def test_a_line_whose_expression_tells_nothing_is_unknown() -> None:
    assert unknown("metric.update(loss)") == {0}
    assert unknown(None) == {0}
    assert unknown("loss.item()") == set()
    assert unknown_stacks(run(wait()), [frame("metric.update(loss)")], [[0]], {0}) == set()


@pytest.mark.parametrize("more", [{"kind": "call", "name": "Event.synchronize"}, {"may_wait": True},
                                  {"direction": "HtoD"}, {"stack": 1}, {"compiling": True}])  # fmt: skip
def test_what_is_told_otherwise_or_not_resolved_yet_is_not(more: dict[str, Any]) -> None:
    assert unknown("metric.update(loss)", **more) == set()


def test_a_line_is_expected_as_regularly_as_it_was() -> None:
    (expected,) = choose_steps(run(wait()), {0}, {}, 4)[0]
    assert [step for step in range(1_000, 1_032) if expected.holds(step)] == [1005, 1015, 1025]
    assert not expected.holds(95)


def test_a_period_that_is_no_whole_number_is_met() -> None:
    expected = Expected(100, 2.5)
    assert [step for step in range(101, 111) if expected.holds(step)] == [102, 105, 108, 110]


def test_a_line_that_waits_in_most_steps_is_expected_in_each() -> None:
    (expected,) = choose_steps(run(wait(steps=700, last_step=990)), {0}, {}, 4)[0]
    assert all(expected.holds(step) for step in range(1_001, 1_010))


def test_in_drawn_steps_only_what_waits_in_most_is_expected() -> None:
    drawn = (RecordedPhase(name="train", kind="train", steps=1_000, counted_steps=20),)
    assert choose_steps(run(wait(steps=5), phases=drawn), {0}, {}, 4) == {}
    assert choose_steps(run(wait(steps=15), phases=drawn), {0}, {}, 4) == {0: (Expected(95, 1.0),)}


def test_a_line_that_waited_once_or_is_known_is_not_expected() -> None:
    assert choose_steps(run(wait(steps=1, last_step=5)), {0}, {}, 4) == {}
    assert choose_steps(run(wait()), set(), {}, 4) == {}


def test_each_phase_is_looked_at_so_many_times() -> None:
    assert choose_steps(run(wait()), {0}, {0: 4}, 4) == {}
    assert choose_steps(run(wait()), {0}, {0: 3}, 4) != {}


@pytest.mark.parametrize(("seconds", "chosen"), [(10, {1: ()}), (30, {})])
def test_an_end_of_an_epoch_is_looked_at_where_it_is_short(seconds: int, chosen: dict[int, Any]) -> None:
    end = RecordedPhase(name="epoch end", kind="epoch end", times=10, time_ns=seconds * 10**9)
    assert choose_steps(run(wait(phase=1), phases=(TRAIN, end)), {0}, {}, 4) == chosen
