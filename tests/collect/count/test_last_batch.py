"""The last batch of an evaluation, whose end nobody tells."""

from __future__ import annotations

import random

import pytest

from tests.collect.count.program import MS, Phase, Run, running
from tests.collect.count.test_rare_phases import SECOND, read


def search(run: Run, waits: int) -> None:
    """A batch of an evaluation, which is told when the program takes it."""
    run.step()
    read(run, waits, 600 * MS)


def test_a_last_batch_that_could_not_be_counted_is_among_those_that_are_estimated() -> None:
    """Nobody tells that it has ended. It is one of the phase's steps all the same."""
    with running(random.Random(1).random) as run:
        evaluate = run.enter(Phase(1, "evaluate"))
        run.now += MS
        for _ in range(15):
            search(run, 30)
        run.counter._account.cost_ns += 2 * SECOND
        run.counter._account.rare_ns += SECOND
        search(run, 30)
        assert not run.counting
        run.counter.close()
        (found,) = run.counter.waits()
        assert (found.count, evaluate.steps, run.counter.counted_steps(evaluate)) == (450, 16, 15)
        assert run.counter.one_in(evaluate) == pytest.approx(16 / 15)
        assert found.estimate == pytest.approx(480)
        assert found.variance > 0


@pytest.mark.parametrize("counted", [True, False], ids=["counted", "short"])
def test_nothing_lacks_where_the_last_batch_is_counted_or_was_hardly_begun(counted: bool) -> None:
    with running(random.Random(1).random) as run:
        evaluate = run.enter(Phase(1, "evaluate"))
        run.now += MS
        for _ in range(16):
            search(run, 30)
        if not counted:
            run.counter._account.cost_ns += 2 * SECOND
            run.counter._account.rare_ns += SECOND
            run.step()
            run.now += MS
        run.counter.close()
        (found,) = run.counter.waits()
        assert run.counter.counted_steps(evaluate) == evaluate.steps
        assert (found.count, found.estimate) == (480, 480.0)


@pytest.mark.parametrize("missed", [3, 12])
def test_the_moment_before_the_first_batch_is_no_step_though_it_was_counted(missed: int) -> None:
    """A program generates, and is asked to for the first time in the call that begins the phase. Later steps are much
    shorter than the first ones, and could not be counted."""
    with running(random.Random(1).random) as run:
        train, generate = Phase(1), Phase(2, "generate")
        for number in range(4 + missed):
            run.enter(train)
            run.step(100 * MS)
            if number == 4:
                run.counter._account.cost_ns += 2 * SECOND
                run.counter._account.rare_ns += SECOND
                run.counter.tally.of(generate).cost_ns += SECOND
            run.enter(generate)
            run.now += 2_000
            run.step()
            read(run, 30, (600 if number < 4 else 70) * MS)
        run.counter.close()
        (found,) = (each for each in run.counter.waits() if each.phase == 2)
        assert (found.count, run.counter.counted_steps(generate)) == (120, 4)
        assert found.estimate == pytest.approx(30 * (4 + missed))


def test_a_short_last_batch_lacks_where_two_were_told_at_once() -> None:
    """The second call of a module tells that calls are steps. All but the last are followed by a wait for a loader."""
    with running(random.Random(1).random) as run:
        evaluate = run.enter(Phase(1, "evaluate"))
        for number in range(21):
            evaluate.steps += number == 1
            if number:
                run.step()
            if number == 4:
                run.counter._account.cost_ns += 2 * SECOND
                run.counter._account.rare_ns += SECOND
                run.counter.tally.of(evaluate).cost_ns += SECOND
            read(run, 30, 3 * MS)
            run.now += 600 * MS * (number < 20)
        run.enter(Phase(2, "epoch end"))
        run.counter.close()
        (found,) = run.counter.waits()
        counted = run.counter.counted_steps(evaluate)
        assert evaluate.steps == 21 and found.steps == counted < 10
        assert found.estimate == pytest.approx(30 * 21)


def test_a_batch_that_was_over_before_a_window_was_counted_though_nobody_has_told_its_end() -> None:
    """What an evaluation reads at its end, it reads in its last step. A window records the training behind it."""
    with running(random.Random(1).random) as run:
        train, evaluate = Phase(1), Phase(2, "evaluate")
        for number in range(6):
            run.enter(evaluate)
            run.now += 2_000 * (number == 0)
            for _ in range(10):
                run.step()
                read(run, 1, 300 * MS)
            read(run, 1, MS)
            run.enter(train)
            for _ in range(10):
                if number == 2:
                    run.counter.suspend()
                run.step(40 * MS)
            run.counter.resume()
        run.counter.close()
        found = [each for each in run.counter.waits() if each.phase == 2]
        assert run.counter.counted_steps(evaluate) == evaluate.steps == 60
        assert sorted((each.count, each.estimate) for each in found) == [(66, 66.0)]
        assert run.counter.tally.of(evaluate).parts == 0
