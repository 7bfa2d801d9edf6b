"""A step that lasts: an evaluation that nothing tells from the training around it, and steps counted in part."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest

from syncscope.schema.counting import CountedWait
from tests.collect.count.program import MS, PRICES, Phase, Run, running, wait, wrapped

TICK_NS = 500 * MS


class Program:
    """A training in which each step has ``WAITS``, and between two of them episodes are played."""

    WAITS = 14
    US = 1_000

    def __init__(self, run: Run, copies: bool = False) -> None:
        self.run, self._copies = run, copies
        self._ticked = run.now
        self._left = 0
        self.train = run.enter(Phase(1))

    def take(self, ns: int) -> None:
        self.run.now += ns
        if self.run.now - self._ticked >= TICK_NS:
            self._ticked = self.run.now
            self.run.counter.tick()

    def learn(self, steps: int) -> None:
        run = self.run
        for _ in range(steps):
            for _ in range(self.WAITS):
                wait()
                if self._copies:  # from pinned memory: counted by nobody, but in the way
                    run.torch.Tensor(pinned=True).to("cuda", non_blocking=True)
                    self.take((not run.counting and wrapped(run)) * int(PRICES.gate))
                self.take(200 * self.US)
            run.tracker.unheard += 1
            if not self._left or run.tracker.told:
                run.tracker.hear()
                run.tracker.told = False
                self._left = run.counter.stepped(self.train) + 1
            self._left -= 1

    def play(self, calls: int) -> None:
        for _ in range(calls):
            wait()
            wait()
            self.take(600 * self.US)


def lines(run: Run) -> list[CountedWait]:
    return [each for _, each in sorted(run.lines().items())]


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("ends", [False, True], ids=["until the end", "and on"])
def test_waits_of_a_step_that_lasts_are_told_of_all_its_time(seed: int, ends: bool) -> None:
    """Counting them all would be too dear. So counting stops and goes on in the midst of the step."""
    dear = replace(PRICES, warning=10_000.0)
    with running(random.Random(seed).random, dear) as run:
        program = Program(run)
        program.learn(900)
        before = run.counter.counted_steps(program.train)
        program.play(10_000)
        if ends:
            program.learn(900)
            assert run.counter.counted_steps(program.train) > before + 3
        run.counter.close()
        usual, first, second = lines(run)
    assert usual.estimate == pytest.approx(program.WAITS * program.train.steps, rel=0.15)
    for each in (first, second):
        assert each.count < 5_000 and each.steps == 1
        assert each.estimate == pytest.approx(10_000, rel=0.15)
        assert each.estimate is not None
        assert abs(each.estimate - 10_000) <= 2 * each.variance**0.5


@pytest.mark.parametrize("seed", range(4))
def test_the_time_that_counting_takes_is_no_time_of_the_program(seed: int) -> None:
    """Counting slows a dense evaluation down by half. In the time that was not counted, it does more."""
    dear = replace(PRICES, warning=20_000.0)
    with running(random.Random(seed).random, dear) as run:
        program = Program(run)
        program.learn(4_000)
        for _ in range(20_000):
            wait()
            program.take(60 * program.US + int(dear.warning) * run.counting)
        run.counter.close()
        _, read = lines(run)
    assert read.count < 5_000
    assert read.estimate == pytest.approx(20_000, rel=0.08)


@pytest.mark.parametrize("seed", range(4))
def test_counting_goes_on_where_passing_through_wrappers_takes_all_that_may_be_spent(seed: int) -> None:
    """After a dear evaluation drawn steps wait until they can be afforded. The wrappers are taken out meanwhile."""
    with running(random.Random(seed).random, replace(PRICES, warning=10_000.0, gate=2_000.0, out=600_000.0)) as run:
        program = Program(run, copies=True)
        program.learn(900)
        program.play(3_000)
        before = run.counter.counted_steps(program.train)
        program.learn(4_000)
        assert run.counter.counted_steps(program.train) > before + 20


@pytest.mark.parametrize("seed", range(4))
def test_steps_in_which_counting_stopped_are_told_of_all_their_time(seed: int) -> None:
    """A search at the end of each evaluation is too dear to be counted whole."""
    with running(random.Random(seed).random, replace(PRICES, warning=80_000.0)) as run:
        evaluate, train = Phase(2, "evaluate"), Phase(1)
        for _ in range(4):
            run.enter(train)
            for _ in range(50):
                wait()
                run.step(60 * MS)
            run.enter(evaluate)
            for _ in range(2):
                for _ in range(10):
                    wait()
                run.step(300 * MS)
            for _ in range(500):
                wait()
                run.now += MS + 80_000 * run.counting
            run.step()
        run.counter.close()
        searched = lines(run)[-1]
    assert searched.count < 1_500
    assert searched.estimate == pytest.approx(2_000, rel=0.25)
    assert searched.estimate is not None
    assert abs(searched.estimate - 2_000) <= 2 * searched.variance**0.5


@pytest.mark.parametrize("seed", range(4))
def test_long_steps_are_drawn_and_told_whole_where_all_are_long(seed: int) -> None:
    """Half a second of each step is like that of any other one, but the lines at its end are no more than they are."""
    drawn = random.Random(100 + seed)
    with running(random.Random(seed).random, replace(PRICES, warning=20_000.0)) as run:
        program = Program(run)
        for _ in range(120):
            part = drawn.randint(600, 1_000) * MS // 400
            for _ in range(400):
                wait()
                program.take(part)
            for _ in range(30):
                wait()
                program.take(MS // 10)
            run.step()
        run.counter.close()
        begins, ends = lines(run)
        counted = run.counter.counted_steps(program.train)
    assert counted < 100
    assert begins.estimate == pytest.approx(400 * 120, rel=0.03)
    assert ends.estimate == pytest.approx(30 * 120, rel=0.03)


@pytest.mark.parametrize("seed", range(4))
def test_a_step_that_only_waited_for_its_batch_tells_of_its_own_waits(seed: int) -> None:
    """Workers begin anew every so often, and nothing waits for the device meanwhile."""
    with running(random.Random(seed).random, replace(PRICES, warning=80_000.0)) as run:
        program = Program(run)
        for number in range(400):
            for _ in range(15 * (number % 10 == 9)):
                program.take(100 * MS)
            for _ in range(10):
                wait()
                program.take(5 * MS)
            run.step()
        run.counter.close()
        (found,) = lines(run)
    assert run.counter.counted_steps(program.train) < 300
    assert found.estimate == pytest.approx(10 * 400, rel=0.02)
