"""A phase that is told in the midst of its step, by a better source of steps say: that step seems short."""

from __future__ import annotations

from syncscope.collect.count.spending import steps_until
from tests.collect.count.program import MS, Phase, running


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
