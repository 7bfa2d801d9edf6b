"""Counting that stops in one phase, and what is told of the steps of another, or of a phase without steps."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest

from tests.collect.count.program import MS, PRICES, Phase, Run, running, wait

PRICE = 60_000
DEAR = replace(PRICES, warning=float(PRICE))


def work(run: Run, waits: int, length_ns: int) -> None:
    for _ in range(waits):
        wait()
        run.now += length_ns // waits + PRICE * run.counting


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("reads", [4, 40, 120])
def test_a_step_that_is_over_is_counted_though_counting_stopped_before_anybody_tells_its_end(
    seed: int, reads: int
) -> None:
    """An evaluation calls the network once, and reads the results. Its step ends with the next evaluation."""
    with running(random.Random(seed).random, DEAR) as run:
        train, evaluate = Phase(1), Phase(2, "evaluate")
        for _ in range(300):
            run.enter(train)
            for _ in range(7):
                work(run, 1 + (reads < 10), 7 * MS)
                run.step()
            run.enter(evaluate)
            run.step()
            work(run, reads, 24 * MS)
        run.counter.close()
        (read,) = (each for each in run.counter.waits() if each.phase == 2)
        counted = run.counter.counted_steps(evaluate)
    assert 0 < counted < 290
    assert read.steps == pytest.approx(counted, abs=2)
    assert read.estimate == pytest.approx(reads * evaluate.steps, rel=0.05)


def test_what_counting_missed_of_a_phase_without_steps_is_told_of_its_time() -> None:
    with running(random.Random(1).random, DEAR) as run:
        train, between = Phase(1), Phase(2, "epoch end")
        for _ in range(6):
            run.enter(train)
            for _ in range(20):
                work(run, 2, 20 * MS)
                run.step()
            run.enter(between)
            work(run, 500, 500 * MS)
        run.counter.close()
        (moved,) = (each for each in run.counter.waits() if each.phase == 2)
    assert moved.count < 1_000
    assert moved.estimate == pytest.approx(3_000, rel=0.2)
    assert moved.estimate is not None
    assert abs(moved.estimate - 3_000) <= 2 * moved.variance**0.5
