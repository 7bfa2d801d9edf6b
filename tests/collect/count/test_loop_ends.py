"""What follows a loop of which steps are left out comes once a stay, and is counted by itself once the end is told."""

from __future__ import annotations

import random
from dataclasses import replace
from typing import Any

import pytest

from syncscope.collect.count.account import TAIL, TAIL_NS, Account
from syncscope.schema.counting import CountedWait, PhaseKind
from tests.collect.count.program import MS, PRICES, Phase, Run, running, wait
from tests.collect.count.test_last_steps import tail
from tests.collect.count.test_rare_phases import SECOND, step

WARNING = int(PRICES.warning)


def sample(run: Run, phase: Phase, steps: int, waits: int, length_ns: int = MS) -> None:
    """So many steps that begin with a call, up to the end of their loop."""
    for _ in range(steps):
        run.step()
        for _ in range(waits):
            wait()
            run.now += WARNING * run.counting
        run.now += length_ns
    run.end_loop()


def train_for(run: Run, train: Phase, steps: int) -> None:
    run.enter(train)
    for _ in range(steps):
        step(run, 2, 10 * MS)


def lines(run: Run, phase: Phase) -> list[CountedWait]:
    """The waits of ``phase``, by line."""
    run.counter.close()
    return [each for (number, _), each in sorted(run.lines().items()) if number == phase.number]


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("kind", ["evaluate", "generate"])
def test_the_pictures_of_two_samplings_are_read_in_each(seed: int, kind: PhaseKind) -> None:
    """1,000 steps of a diffusion model, twice in the run. The steps' waits are dense, so that few are counted."""
    with running(random.Random(seed).random) as run:
        train, generate = Phase(1), Phase(2, kind)
        for _ in range(2):
            train_for(run, train, 100)
            run.enter(generate)
            sample(run, generate, 1_000, 9)
            tail(run, 1, MS)
        assert run.counter.one_in(generate) > 3
        often, read = sorted(lines(run, generate), key=lambda each: -each.count)
        assert (read.count, read.estimate) == (2, 2)
        assert often.estimate == pytest.approx(9 * 2_000, rel=0.03)
        assert run.counter.overhead_share is not None and run.counter.overhead_share < 0.01


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("steps", [5, 40])
def test_the_steps_themselves_are_told_as_ever(seed: int, steps: int) -> None:
    """Also where stays are so short that their last steps are many of all: what is counted of these is no step."""
    draw = random.Random(seed)
    with running(draw.random) as run:
        train, evaluate = Phase(1), Phase(2, "evaluate")
        made = stays = 0
        while made < 4_000:
            train_for(run, train, 3)
            run.enter(evaluate)
            made += (now := draw.randrange(steps // 2, 2 * steps))
            stays += 1
            sample(run, evaluate, now, 30, 2 * MS)
            tail(run, 3, MS)
        often, read = sorted(lines(run, evaluate), key=lambda each: -each.count)
        assert run.counter.one_in(evaluate) > 3
        assert often.estimate == pytest.approx(30 * made, rel=0.05)
        assert read.estimate == pytest.approx(3 * stays, rel=0.1)


def test_the_ends_of_loops_of_one_step_are_not_asked_for() -> None:
    """A rollout that calls a function for each step of its environment, in which a loop calls the networks of all
    agents: each end would be a change of phase and back, thousands of times."""
    with running(random.Random(3).random) as run:
        asked, watch_end = 0, run.tracker.watch_end

        def watch(*given: Any) -> float:
            nonlocal asked
            asked += 1
            return watch_end(*given)

        setattr(run.tracker, "watch_end", watch)  # noqa: B010
        train, evaluate = Phase(1), Phase(2, "evaluate")
        for _ in range(10):
            train_for(run, train, 10)
            for _ in range(400):
                run.enter(evaluate)
                sample(run, evaluate, 1, 30)
                tail(run, 2, MS)
        assert run.counter.one_in(evaluate) > 3
        often, read = sorted(lines(run, evaluate), key=lambda each: -each.count)
        assert often.estimate == pytest.approx(30 * 4_000, rel=0.1)
        assert read.estimate == pytest.approx(2 * 4_000, rel=0.1)
        assert asked < 40


def test_what_it_takes_to_leave_a_loop_and_come_back_is_part_of_what_its_end_may_take() -> None:
    account = Account(replace(PRICES, step=10_000.0, switch=10_000.0))
    account.time_ns = 10 * SECOND
    before = account.tail_left_ns
    account.book_end(50_000)
    assert account.tail_left_ns == before - 100_000
    assert account.cost_ns == 50_000


@pytest.mark.parametrize("seed", range(4))
def test_what_follows_a_step_that_stands_for_many_stands_for_itself(seed: int) -> None:
    with running(random.Random(seed).random) as run:
        train, generate = Phase(1), Phase(2, "generate")
        for number in range(3):
            train_for(run, train, 100)
            run.enter(generate)
            steps = 400 + 100 * number
            state = run.counter.tally.of(generate)
            for made in range(5_000):
                run.step()
                for _ in range(9):
                    wait()
                    run.now += WARNING * run.counting
                run.now += MS
                if made > steps and run.counting and state.weight > 2:
                    break
            run.end_loop()
            tail(run, 2, MS)
        read = min(lines(run, generate), key=lambda each: each.count)
        assert (read.count, read.estimate) == (6, 6)


def test_dense_waits_behind_loops_take_no_more_than_their_part() -> None:
    dear = replace(PRICES, warning=40_000.0)
    with running(random.Random(2).random, dear) as run:
        train, evaluate = Phase(1), Phase(2, "evaluate")
        for _ in range(30):
            train_for(run, train, 20)
            run.enter(evaluate)
            sample(run, evaluate, 20, 4)
            for _ in range(2_000):
                wait()
                run.now += 10_000 + 40_000 * run.counting
        account = run.counter._account
        assert 0 < account.tail_ns <= TAIL_NS + TAIL * account.time_ns
        assert run.counter.overhead_share is not None and run.counter.overhead_share < 0.01


def test_nobody_asks_for_the_end_where_all_steps_are_counted() -> None:
    with running(random.Random(1).random, before_ns=SECOND) as run:
        train, evaluate = Phase(1), Phase(2, "evaluate")
        for _ in range(3):
            train_for(run, train, 20)
            run.enter(evaluate)
            for _ in range(20):
                step(run, 1, 5 * MS)
                assert run.tracker.over is None
        assert run.counter._account.tail_ns == 0


def test_an_error_of_ours_does_not_reach_the_program(monkeypatch: pytest.MonkeyPatch) -> None:
    with running(random.Random(1).random) as run:
        train, generate = Phase(1), Phase(2, "generate")
        train_for(run, train, 50)
        run.enter(generate)

        def fail(state: Any) -> None:
            raise RuntimeError("ours")

        monkeypatch.setattr(run.counter, "_count_tail", fail)
        sample(run, generate, 500, 9)
        assert "ours" in run.counter.failure
    assert run.tracker.over is None


def train_alone(run: Run, steps: int, tells_ends: bool) -> tuple[Phase, Phase]:
    """A training of so many steps with nine waits each, of which few are counted, and what comes behind its loop."""
    train, behind = Phase(1), Phase(2, "epoch end")
    run.tracker.tells_ends = tells_ends
    run.tracker.left = lambda: run.enter(behind)
    run.enter(train)
    for _ in range(steps):
        for _ in range(9):
            wait()
            run.now += WARNING * run.counting
        run.step(MS)
    run.end_loop()
    for _ in range(3):
        wait()
    return train, behind


@pytest.mark.parametrize("seed", range(4))
def test_what_follows_a_training_is_counted(seed: int) -> None:
    """The weights that no longer learn are compared with those of before, in lines that wait once."""
    with running(random.Random(seed).random) as run:
        train, behind = train_alone(run, 1_000, tells_ends=True)
        assert run.counter.one_in(train) > 3
        assert [(each.count, each.estimate) for each in lines(run, behind)] == [(3, 3)]
        assert run.counter.overhead_share is not None and run.counter.overhead_share < 0.01


def test_the_end_of_a_short_training_is_asked_for_until_another_phase_tells_it() -> None:
    """An update of a policy comes again and again, and another phase follows it each time."""
    with running(random.Random(1).random) as run:
        asked: list[float] = []

        def watch(over: Any, most_ns: float) -> float:
            asked.append(most_ns)
            return 0.0

        setattr(run.tracker, "watch_end", watch)  # noqa: B010
        train, rollout = Phase(1), Phase(2, "rollout")
        at_first = 0
        for update in range(30):
            run.enter(train)
            for _ in range(100):
                for _ in range(9):
                    wait()
                    run.now += WARNING * run.counting
                run.step(MS)
            run.enter(rollout)
            run.now += MS
            at_first = at_first if update else len(asked)
        assert run.counter.one_in(train) > 3
        assert len(asked) == at_first > 0


def pictures() -> None:
    wait()


@pytest.mark.parametrize("seed", range(8))
def test_what_follows_loops_of_any_length_is_told_by_those_after_which_it_was_counted(seed: int) -> None:
    """Where nothing tells their ends, as before Python 3.12, and their last steps cannot be foreseen."""
    draw = random.Random(seed)
    with running(draw.random) as run:
        run.tracker.tells_ends = False
        train, generate = Phase(1), Phase(2, "generate")
        for _ in range(60):
            train_for(run, train, 20)
            run.enter(generate)
            sample(run, generate, draw.randrange(60, 140), 30, 2 * MS)
            for _ in range(10):
                pictures()
                run.now += WARNING * run.counting
        assert run.counter.one_in(generate) > 3
        read = run.by_function()[2, "pictures"]
        assert read.estimate is not None and read.variance is not None
        assert abs(read.estimate - 600) <= 2 * read.variance**0.5
        assert read.estimate == pytest.approx(600, rel=0.2)


@pytest.mark.parametrize("seed", range(4))
def test_the_last_step_of_an_evaluation_is_foreseen_whatever_is_told_to_follow_it(seed: int) -> None:
    """The epoch ends with a wait, which is only heard where that step was counted: else the training follows."""
    with running(random.Random(seed).random) as run:
        run.tracker.tells_ends = False
        train, evaluate, end = Phase(1), Phase(2, "evaluate"), Phase(3, "epoch end")
        for _ in range(12):
            train_for(run, train, 300)
            run.enter(evaluate)
            sample(run, evaluate, 300, 30, 2 * MS)
            if run.counting:
                run.enter(end)
                pictures()
            run.now += MS
        assert run.counter.one_in(evaluate) > 3
        assert run.by_function()[3, "pictures"].count >= 9
