"""A phase that is told in the midst of its step, by a better source of steps say: that step seems short."""

from __future__ import annotations

import random
from types import FrameType

import pytest

from syncscope.collect.count.spending import steps_until
from tests.collect.count.program import MS, PRICES, Phase, only, running, wait


def test_a_pause_is_not_hundreds_of_steps_because_the_first_was_short() -> None:
    """500 steps of 0.1 ms are the 50 ms after which to look again. One such step does not tell that all are."""
    with running() as run:
        train = run.enter(Phase(1))
        run.step(MS // 10)
        state = run.counter.tally.of(train)
        assert steps_until(state, 1e9) <= 3
        for _ in range(400):
            run.step(MS // 10)
        assert steps_until(state, 1e9) > 400


def test_the_moment_before_a_slow_first_step_is_none_of_the_counted_ones() -> None:
    """Two steps are told at once when the second call begins. The last one of each stay ends with the loop."""
    prices = PRICES.times(300)  # an evaluation that is too dear to be counted whole
    with running(random.Random(3).random, prices) as run:
        evaluate, between = Phase(1, "evaluate", source="module"), Phase(2, "epoch end")
        for stay in range(6):
            run.enter(evaluate)
            for call in range(8):
                evaluate.steps += call == 1 and not stay
                if call or stay:
                    run.step()
                for _ in range(6):
                    run.now += (20 if call or stay else 60) * MS
                    wait()
            run.end_loop()
            run.enter(between)
            run.now += 50 * MS
        state = run.counter.tally.of(evaluate)
        assert 1 < state.counted_steps < evaluate.steps == 6 * 8
        assert only(run).estimate == pytest.approx(6 * 8 * 6, rel=0.01)


@pytest.mark.parametrize("explicit", [False, True])
def test_a_wait_that_tells_of_a_phase_counts_though_a_look_begins_with_that(explicit: bool) -> None:
    """Nothing but the wait says that the evaluation's loop is over. The look hears what comes behind it."""
    with running() as run:
        evaluate, between = run.enter(Phase(1, "evaluate")), Phase(2, "epoch end")
        run.step(MS)

        def at(frame: FrameType) -> Phase:
            if run.tracker.current is evaluate:
                run.enter(between)
                run.counter.suspend()
            return between

        run.tracker.at = at  # type: ignore[method-assign]
        if explicit:
            run.torch._C._cuda_synchronize()
        else:
            wait()
        wait()  # the look's
        run.counter.add_window(between, (), (0,))
        run.counter.resume()
        assert (only(run).phase, only(run).count, only(run).estimate) == (2, 1, 1)
        wait()
        assert sum(one.count for one in run.counter.waits()) == 2
