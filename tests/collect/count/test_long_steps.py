"""Steps that are drawn and turn out to last much longer than others: what waits in them alone is not in every step."""

from __future__ import annotations

import random
from collections.abc import Callable, Container
from dataclasses import replace

import pytest

from syncscope.collect.count.unusual import Unusual
from syncscope.schema.counting import CountedWait
from tests.collect.count.program import MS, PRICES, Phase, Run, running, wait


def learns() -> None:
    wait()


def makes_masks() -> None:
    wait()


class Training:
    """Steps of about ``step_ns`` with as many waits as ``usual``, and in those of ``long`` 40 more in ``more_ns``."""

    def __init__(self, seed: int, step_ns: int, more_ns: int, usual: int, price: int, long: Container[int]) -> None:
        self._lengths, self._uniform = random.Random(1_000 + seed), random.Random(seed).random
        self._step_ns, self._more_ns, self._usual, self._price, self._long = step_ns, more_ns, usual, price, long

    def run_for(self, steps: int) -> tuple[CountedWait, CountedWait | None, float]:
        """What is told of both lines, and one step in how many was counted."""
        with running(self._uniform, replace(PRICES, warning=float(self._price)), before_ns=5_000 * MS) as run:
            train, left = run.enter(Phase(1)), 0
            for number in range(steps):
                self._wait(run, learns, self._usual, max(self._lengths.gauss(1, 0.25), 0.4) * self._step_ns)
                self._wait(run, makes_masks, 40 * (number in self._long), self._more_ns)
                run.tracker.unheard += 1
                if not left:
                    run.tracker.hear()
                    left = run.counter.stepped(train) + 1
                left -= 1
            run.counter.close()
            frames, stacks = run.stacks.resolve()
            names = [frames[stack[-2]].function for stack in stacks]
            found = {names[each.stack]: each for each in run.counter.waits()}
            return found["learns"], found.get("makes_masks"), run.counter.one_in(train)

    def _wait(self, run: Run, line: Callable[[], None], waits: int, length_ns: float) -> None:
        for _ in range(waits):
            line()
            run.now += int(length_ns / waits) + self._price * run.counting


def test_what_waits_in_the_only_long_step_is_told_as_often_as_it_was_counted() -> None:
    """A mask is made anew once. No other step took as long, so that the step stands for no other one."""
    told = [Training(seed, 100 * MS, 800 * MS, 40, 15_000, {202}).run_for(500) for seed in range(10)]
    drawn = [masks for _, masks, _ in told if masks is not None]
    assert len(drawn) >= 2 and all(one_in > 1.5 for _, _, one_in in told)
    for usual, _, _ in told:
        assert usual.estimate == pytest.approx(40 * 500, rel=0.01)
    for masks in drawn:
        assert (masks.count, masks.steps) == (40, 1)
        assert masks.estimate == pytest.approx(40, rel=0.1)


@pytest.mark.parametrize("seed", range(6))
def test_what_waits_in_long_steps_is_told_by_how_long_those_that_were_left_out_took(seed: int) -> None:
    """One in 50 steps takes 20 times as long. Few of them are drawn."""
    _, masks, one_in = Training(seed, 7 * MS, 140 * MS, 4, 40_000, range(25, 2_500, 50)).run_for(2_500)
    assert one_in > 4 and masks is not None and masks.estimate is not None
    assert masks.count < 1_000
    assert masks.estimate == pytest.approx(40 * 50, rel=0.1)
    assert abs(masks.estimate - 40 * 50) <= 2 * masks.variance**0.5


@pytest.mark.parametrize("seed", range(4))
def test_a_long_step_in_which_counting_stopped_stands_for_no_more_than_are_as_long(seed: int) -> None:
    """It is told by its own time. The steps that were left out took no longer than usual."""
    with running(random.Random(seed).random, replace(PRICES, warning=20_000.0)) as run:
        run.enter(Phase(1))
        drawn = 0
        for number in range(600):
            for _ in range(40):
                learns()
                run.now += 2 * MS + 20_000 * run.counting
            if not drawn and number > 300 and run.counting:
                drawn = number
                for _ in range(4_000):
                    makes_masks()
                    run.now += MS // 4 + 20_000 * run.counting
            run.step()
        run.counter.close()
        found = sorted(run.counter.waits(), key=lambda each: each.first_step)
    assert drawn and len(found) == 2
    assert 100 < found[1].count < 4_000
    assert found[1].estimate == pytest.approx(4_000, rel=0.1)


def test_steps_that_cannot_be_told_stand_for_as_many_as_others() -> None:
    """Between counted steps so many are left out that a long one of them does not show."""
    unusual = Unusual()
    draw = random.Random(1)
    for _ in range(20):
        unusual.learn(1, draw.uniform(0.5, 1.5) * MS)
    where = unusual.take(20 * MS, 10)
    assert where is not None
    unusual.miss(5_000, 5_000 * MS)
    assert unusual.scale(where).likely == float("inf")
    unusual.miss(10, 10 * MS)
    assert unusual.scale(where).likely == 1
    unusual.miss(10, 29 * MS)
    assert unusual.scale(where).likely == pytest.approx(1 + 5_020 / 20, rel=0.1)
