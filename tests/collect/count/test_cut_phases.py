"""Counting that stops in one phase, and what is told of the steps of another, or of a phase without steps."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest

from syncscope.schema.counting import CountedWait
from tests.collect.count.program import MS, PRICES, Phase, Run, running, wait

PRICE = 60_000
DEAR = replace(PRICES, warning=float(PRICE))


def work(run: Run, waits: int, length_ns: int, price_ns: int = PRICE, *, tick: bool = False) -> None:
    """So many waits, and the counter's ``tick`` every 100 ms."""
    for _ in range(waits):
        wait()
        before = run.now // (100 * MS)
        run.now += length_ns // waits + price_ns * run.counting
        if tick and run.now // (100 * MS) != before:
            run.counter.tick()


def train_for(run: Run, train: Phase, steps: int, waits: int, length_ns: int, price_ns: int = PRICE) -> None:
    run.enter(train)
    for _ in range(steps):
        work(run, waits, length_ns, price_ns)
        run.step()


def evaluate_once(run: Run, evaluate: Phase, waits: int, length_ns: int, price_ns: int = PRICE) -> None:
    run.enter(evaluate)
    run.step()
    work(run, waits, length_ns, price_ns)


def read_in(run: Run, phase: Phase) -> CountedWait:
    """What the run tells at its end of the only line that waits in ``phase``."""
    run.counter.close()
    (read,) = (each for each in run.counter.waits() if each.phase == phase.number)
    return read


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("reads", [4, 40, 120])
def test_a_step_that_is_over_is_counted_though_counting_stopped_before_anybody_tells_its_end(
    seed: int, reads: int
) -> None:
    """An evaluation calls the network once, and reads the results. Its step ends with the next evaluation."""
    with running(random.Random(seed).random, DEAR) as run:
        train, evaluate = Phase(1), Phase(2, "evaluate")
        for _ in range(300):
            train_for(run, train, 7, 1 + (reads < 10), 7 * MS)
            run.enter(evaluate)
            run.step()
            work(run, reads, 24 * MS)
        run.counter.close()
        (read,) = (each for each in run.counter.waits() if each.phase == 2)
        counted = run.counter.counted_steps(evaluate)
    assert 0 < counted < 290
    assert read.steps == pytest.approx(counted, abs=2)
    assert read.estimate == pytest.approx(reads * evaluate.steps, rel=0.05)


@pytest.mark.parametrize("seed", range(4))
def test_a_step_of_an_evaluation_that_follows_another_one_stands_for_those_that_were_missed(seed: int) -> None:
    """A rollout and the values of what it met, in turn: each step of both begins as the program enters the phase."""
    with running(random.Random(seed).random, DEAR) as run:
        act, judge = Phase(1, "evaluate"), Phase(2, "evaluate")
        for _ in range(20):
            for _ in range(20):
                if run.tracker.current is not act:
                    run.enter(act)
                run.step()
                work(run, 20, 20 * MS)
            evaluate_once(run, judge, 300, 300 * MS)
        read = read_in(run, judge)
    assert read.count < 2_000
    assert read.estimate == pytest.approx(6_000, rel=0.25)


@pytest.mark.parametrize("seed", range(4))
def test_steps_that_were_missed_are_like_those_that_lasted_where_none_was_counted_whole(seed: int) -> None:
    """A rollout, the values of what it met, and training, in turn. Some of the values are found to last."""
    with running(random.Random(seed).random, replace(PRICES, warning=30_000.0)) as run:
        act, judge, train = Phase(1, "evaluate"), Phase(2, "evaluate"), Phase(3)
        for _ in range(20):
            for _ in range(100):
                if run.tracker.current is not act:
                    run.enter(act)
                run.step()
                work(run, 10, 7 * MS, 30_000, tick=True)
            run.enter(judge)
            run.step()
            work(run, 600, 106 * MS, 30_000, tick=True)
            run.enter(train)
            for _ in range(10):
                work(run, 100, 28 * MS, 30_000, tick=True)
                run.step()
        read = read_in(run, judge)
    assert read.count < 1_200
    assert read.estimate is not None
    assert 8_000 < read.estimate < 16_000
    assert abs(read.estimate - 12_000) <= 2 * read.variance**0.5


@pytest.mark.parametrize("price", [14_000, 40_000])
@pytest.mark.parametrize("seed", range(4))
def test_steps_that_were_missed_are_like_those_in_which_counting_stopped(seed: int, price: int) -> None:
    """What is counted whole is what is cheap: the moment before the first call of all, here."""
    with running(random.Random(seed).random, replace(PRICES, warning=float(price)), before_ns=1_000 * MS) as run:
        act, judge, train = Phase(1, "evaluate"), Phase(2, "evaluate"), Phase(3)
        for _ in range(20):
            run.enter(act)
            for _ in range(100):
                run.now += 3_000
                run.step()
                work(run, 34, 9 * MS, price)
            run.enter(judge)
            run.now += 3_000
            run.step()
            work(run, 600, 120 * MS, price)
            run.enter(train)
            for _ in range(10):
                work(run, 19, 24 * MS, price)
                run.step()
        read = read_in(run, judge)
    assert read.estimate is not None
    assert 4_000 < read.estimate < 16_000
    assert abs(read.estimate - 12_000) <= 2 * read.variance**0.5


@pytest.mark.parametrize("seed", range(4))
def test_a_step_that_was_missed_or_cut_is_not_taken_for_a_whole_one(seed: int) -> None:
    """Counting goes on in the training that follows, before anybody tells the end of the step."""
    with running(random.Random(seed).random, replace(PRICES, warning=100_000.0)) as run:
        train, evaluate = Phase(1), Phase(2, "evaluate")
        for _ in range(200):
            train_for(run, train, 10, 2, 20 * MS, 100_000)
            evaluate_once(run, evaluate, 50, 20 * MS, 100_000)
        read = read_in(run, evaluate)
        whole = run.counter.counted_steps(evaluate)
        parts = run.counter.tally.phases[2].parts
    assert 0.9 * 50 * whole <= read.count  # counting stopped before the last wait of one
    assert whole + parts <= evaluate.steps
    assert read.estimate == pytest.approx(10_000, rel=0.25)


@pytest.mark.parametrize("seed", range(4))
def test_a_step_was_counted_whole_where_counting_stops_as_the_program_comes_for_the_next_one(seed: int) -> None:
    """What may be spent is used up in the step before: nobody tells that it is over before the next one begins."""
    with running(random.Random(seed).random, replace(PRICES, warning=15_000.0)) as run:
        train, generate = Phase(1), Phase(2, "generate")
        run.enter(train)
        for number in range(40):
            work(run, 1, 20 * MS, 15_000)
            run.step()
            if number % 4 == 0:
                if number == 20:
                    run.counter._account.cost_ns += 1e12
                    run.counter.tally.of(generate).cost_ns += 1e12
                run.enter(generate)
                run.now += 2_000
                run.step()
                work(run, 64, 200 * MS, 15_000)
                run.enter(train)
        read = read_in(run, generate)
        state = run.counter.tally.of(generate)
    assert (read.count, read.steps, state.parts) == (5 * 64, 5, 0)
    assert read.estimate == pytest.approx(10 * 64, rel=0.05)


@pytest.mark.parametrize("seed", range(4))
def test_the_last_step_stands_for_no_more_than_were_left_out(seed: int) -> None:
    """It has no end, as nothing follows it, and stands for many others."""
    with running(random.Random(seed).random, replace(PRICES, warning=6_000.0)) as run:
        train, evaluate = Phase(1), Phase(2, "evaluate")
        for _ in range(60):
            train_for(run, train, 20, 2, 20 * MS)
            evaluate_once(run, evaluate, 2_000, 100 * MS, 6_000)
        read = read_in(run, evaluate)
    assert read.estimate == pytest.approx(120_000, rel=0.25)


@pytest.mark.parametrize("seed", range(4))
def test_where_no_step_could_be_counted_whole_all_are_told_by_parts_of_some(seed: int) -> None:
    with running(random.Random(seed).random, replace(PRICES, warning=400_000.0)) as run:
        train, evaluate = Phase(1), Phase(2, "evaluate")
        for _ in range(20):
            train_for(run, train, 20, 1, 40 * MS)
            evaluate_once(run, evaluate, 300, 300 * MS, 400_000)
        read = read_in(run, evaluate)
        assert run.counter.counted_steps(evaluate) < 5
    assert read.count < 600
    assert read.estimate is not None
    assert 3_000 < read.estimate < 12_000
    assert abs(read.estimate - 6_000) <= 2 * read.variance**0.5


@pytest.mark.parametrize("length_ms", [500, 50], ids=["cheap", "dear"])
def test_what_counting_missed_of_a_phase_without_steps_is_told_of_its_time(length_ms: int) -> None:
    """Where its waits are dense, counting them slows it down."""
    with running(random.Random(1).random, DEAR) as run:
        train, between = Phase(1), Phase(2, "epoch end")
        for _ in range(6):
            train_for(run, train, 20, 2, 20 * MS)
            run.enter(between)
            work(run, 500, length_ms * MS)
        run.counter.close()
        (moved,) = (each for each in run.counter.waits() if each.phase == 2)
    assert moved.count < 1_000
    assert moved.estimate == pytest.approx(3_000, rel=0.1)
    assert moved.estimate is not None
    assert abs(moved.estimate - 3_000) <= 2 * moved.variance**0.5
