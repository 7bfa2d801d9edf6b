"""What waits in the first turn of a training's loop, before its first call of the model."""

from __future__ import annotations

import pytest

from syncscope.schema.counting import CountedWait, PhaseKind
from tests.collect.count.program import MS, Phase, running, wait


def loads() -> None:
    wait()


def turn() -> None:
    """The batch comes to the device."""
    wait()


def ran(kind: PhaseKind, steps: int) -> dict[tuple[int, str], CountedWait]:
    with running() as run:
        run.tracker.looped = {(1, "turn")}
        phase = Phase(1, kind)
        loads()
        for step in range(steps):
            turn()
            if not step:
                run.now += MS
                run.enter(phase)  # the model is called
            run.step(10 * MS)
        return run.by_function()


@pytest.mark.parametrize("steps", [1, 10, 200])
def test_the_first_batch_is_part_of_the_first_step(steps: int) -> None:
    lines = ran("train", steps)
    assert set(lines) == {(0, "loads"), (1, "turn")}
    each = lines[1, "turn"]
    assert (each.count, each.steps, each.first_step) == (steps, steps, 0)
    assert each.estimate == pytest.approx(steps)


def test_steps_that_a_call_begins_have_nothing_before_it() -> None:
    assert (0, "turn") in ran("generate", 10)


def test_a_training_that_goes_on_takes_nothing_of_what_came_before() -> None:
    with running() as run:
        run.tracker.looped = {(1, "turn")}
        train = Phase(1, steps=3)
        turn()
        run.enter(train)
        run.step(MS)
        assert (0, "turn") in run.by_function()


def test_turns_before_their_loop_was_known_are_no_part_of_the_first_step() -> None:
    with running() as run:
        run.tracker.looped, run.tracker.begins_late = {(1, "turn")}, True
        phase = Phase(1, "other")
        for _ in range(1_000):
            turn()
        run.enter(phase)
        for _ in range(100):
            turn()
            run.step(MS)
        lines = run.by_function()
    assert lines[0, "turn"].count == 1_000
    assert lines[1, "turn"].estimate == pytest.approx(100)
