"""What is rare is counted whole: evaluations, ends of epochs, checkpoints, and what comes before the first phase."""

from __future__ import annotations

import random

import pytest

from syncscope.collect.count.account import ADVANCE, CAP, GRACE_NS, MOST_ADVANCE_NS, RARE, Account
from syncscope.collect.count.spending import FRESH_NS, FRESH_SHARE
from syncscope.schema.counting import PhaseKind
from tests.collect.count.program import MS, PRICES, Phase, Run, only, running, wait

SECOND = 1_000 * MS
WARNING = int(PRICES.warning)


def read(run: Run, waits: int, length_ns: int) -> int:
    """Wait so often within ``length_ns``. Returns what counting it cost."""
    cost = 0
    for _ in range(waits):
        took = WARNING * run.counting
        wait()
        run.now += length_ns // waits + took
        cost += took
    return cost


def step(run: Run, waits: int, length_ns: int) -> int:
    cost = read(run, waits, length_ns)
    run.step()
    return cost


def counts(run: Run, phase: int) -> list[int]:
    return [each.count for each in run.counter.waits() if each.phase == phase]


def test_a_start_full_of_waits_is_counted_whole() -> None:
    with running(before_ns=4 * SECOND) as run:
        read(run, 4_000, 900 * MS)
        assert only(run).count == 4_000
        run.enter(Phase(1))
        step(run, 1, 10 * MS)
        assert counts(run, 1) == [1]  # what the start took is not taken from training


def test_a_dense_evaluation_of_a_sampled_training_is_counted_in_every_step() -> None:
    with running(random.Random(1).random, before_ns=4 * SECOND) as run:
        train, evaluate = Phase(1), Phase(2, "evaluate")
        for _ in range(5):
            run.enter(train)
            for _ in range(2_000):
                step(run, 20, 2 * MS)
            run.enter(evaluate)
            for _ in range(50):
                step(run, 20, 2 * MS)
        assert counts(run, 2) == [5 * 50 * 20]
        assert run.counter.one_in(evaluate) == 1 < run.counter.one_in(train)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(
    ("steps", "waits", "before_ns"), [(10, 3_000, 4 * SECOND), (40, 300, 0)], ids=["nothing left", "something left"]
)
def test_the_first_steps_of_an_evaluation_take_of_what_is_rare_what_the_training_left_them_lacking(
    seed: int, steps: int, waits: int, before_ns: int
) -> None:
    """And no more than that: the later steps have to be counted too."""
    with running(random.Random(seed).random, before_ns=before_ns) as run:
        train, evaluate = Phase(1), Phase(2, "evaluate")
        for _epoch in range(4):
            run.enter(train)
            for _ in range(steps):
                step(run, waits, 60 * MS)
            run.enter(evaluate)
            for _ in range(4):
                step(run, 200, 20 * MS)
        assert counts(run, 2) == [4 * 4 * 200]
        assert run.counter.counted_steps(evaluate) == evaluate.steps


def test_a_dense_evaluation_before_the_first_step_is_counted_in_every_step() -> None:
    with running(random.Random(1).random, before_ns=5 * SECOND) as run:
        evaluate = run.enter(Phase(1, "evaluate"))
        for _ in range(200):
            step(run, 20, 2 * MS)
        assert counts(run, 1) == [200 * 20]
        assert run.counter.one_in(evaluate) == 1


def test_an_evaluation_that_takes_the_run_and_is_dense_is_sampled() -> None:
    with running(random.Random(1).random, before_ns=5 * SECOND) as run:
        evaluate = run.enter(Phase(1, "evaluate"))
        for _ in range(20_000):
            step(run, 20, 2 * MS)
        (found,) = run.counter.waits()
        assert run.counter.one_in(evaluate) > 5
        assert found.estimate == pytest.approx(20_000 * 20, rel=0.01)


@pytest.mark.parametrize(("kind", "sampled"), [("evaluate", False), ("rollout", False), ("train", True)])
def test_a_phase_with_little_of_the_time_is_rare_unless_it_trains(kind: str, sampled: bool) -> None:
    with running(random.Random(1).random, before_ns=5 * SECOND) as run:
        train, other = Phase(1), Phase(2, kind)  # type: ignore[arg-type]
        for _ in range(10):
            run.enter(train)
            for _ in range(1_000):
                step(run, 1, 2 * MS)
            run.enter(other)
            for _ in range(10):
                step(run, 20, 2 * MS)
        assert (run.counter.one_in(other) > 1) is sampled


def test_a_rollout_with_much_of_the_time_is_sampled_and_leaves_evaluations_what_is_theirs() -> None:
    with running(random.Random(1).random, before_ns=5 * SECOND) as run:
        rollout, evaluate = run.enter(Phase(1, "rollout")), Phase(2, "evaluate")
        for _ in range(5_000):
            step(run, 20, 2 * MS)
        assert run.counter.one_in(rollout) > 5
        run.enter(evaluate)
        for _ in range(100):
            step(run, 20, 2 * MS)
        assert run.counter.one_in(evaluate) == 1


def test_checkpoints_are_counted_whole_however_many_there_were() -> None:
    with running() as run:
        train, checkpoint = Phase(1), Phase(2, "checkpoint")
        for _ in range(100):
            run.enter(train)
            for _ in range(100):
                step(run, 1, 100 * MS)
            run.enter(checkpoint)
            read(run, 300, 10 * MS)
        assert counts(run, 2) == [100 * 300]
        assert run.counter.one_in(checkpoint) == 1


@pytest.mark.parametrize("kind", ["start", "evaluate", "epoch end"])
def test_what_is_rare_costs_no_more_than_is_kept_for_it(kind: str) -> None:
    before_ns = 3 * SECOND
    with running(random.Random(1).random, before_ns=before_ns) as run:
        cost = 0
        for _turn in range(20):
            run.enter(Phase(0 if kind == "start" else 2, kind))  # type: ignore[arg-type]
            for _ in range(100):
                cost += read(run, 500, 5 * MS)
                if kind == "evaluate":
                    run.step()
            run.enter(Phase(1))
            for _ in range(50):
                cost += step(run, 500, 5 * MS)
        shares = CAP + RARE
        # A step that is under way is let finish its wait.
        assert cost <= shares * run.now + GRACE_NS + min(ADVANCE * before_ns, MOST_ADVANCE_NS) + WARNING * 50
        assert shares <= 0.008


def test_what_is_kept_for_what_is_rare_is_there_also_where_all_else_cost_more_than_it_may() -> None:
    account = Account(PRICES)
    account.time_ns = 20 * SECOND
    account.cost_ns = 0.02 * account.time_ns
    assert account.allow(0) < 0
    assert account.allow(0, rare=True) == pytest.approx(RARE * account.time_ns)


@pytest.mark.parametrize("waits", [1, 20], ids=["rare waits", "dense waits"])
def test_an_evaluation_is_counted_whole_after_a_training_that_cost_more_than_it_may(waits: int) -> None:
    """Also where its own waits are so rare that each step is counted anyway."""
    with running(random.Random(1).random, before_ns=5 * SECOND) as run:
        train, evaluate = run.enter(Phase(1)), Phase(2, "evaluate")
        for _ in range(5_000):
            step(run, 20, 2 * MS)
        run.counter._account.cost_ns += 0.02 * run.now  # as steps do that take longer when they are counted
        run.enter(evaluate)
        for _ in range(200):
            step(run, waits, 2 * MS)
        assert counts(run, 2) == [200 * waits]
        assert run.counter.counted_steps(evaluate) == 200 and run.counter.one_in(train) > 1


def test_the_only_checkpoint_is_counted_when_all_is_spent() -> None:
    with running(random.Random(1).random) as run:
        run.enter(train := Phase(1))
        for _ in range(1_000):
            step(run, 20, 2 * MS)
        account = run.counter._account
        account.cost_ns += CAP * account.time_ns  # following the phases took more than it may, say
        account.rare_ns += account.rare_left_ns
        step(run, 20, 2 * MS)
        run.enter(Phase(2, "checkpoint"))
        read(run, 100, 50 * MS)
        assert counts(run, 2) == [100]
        read(run, 10_000, 50 * MS)
        assert counts(run, 2)[0] < 2 * FRESH_NS / WARNING
        run.enter(train)
        assert not run.counting


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("kind", ["evaluate", "checkpoint"])
def test_what_is_done_after_an_evaluation_in_the_midst_of_a_sampled_step_is_counted(seed: int, kind: PhaseKind) -> None:
    """A trainer looks whether to stop early, say, before the next batch: once an evaluation, and in no drawn step."""

    def look_whether_to_stop() -> None:
        for _ in range(3):
            wait()
            run.now += WARNING * run.counting

    with running(random.Random(seed).random, before_ns=4 * SECOND) as run:
        train, evaluate = Phase(1), Phase(2, kind)
        for _epoch in range(6):
            run.enter(train)
            for _ in range(500):
                step(run, 20, 2 * MS)
            run.enter(evaluate)
            for _ in range(5):
                step(run, 5, 2 * MS)
            run.enter(train)
            look_whether_to_stop()
        steps, looks = sorted(
            (each for each in run.counter.waits() if each.phase == 1), key=lambda each: each.count, reverse=True
        )
        assert looks.count == looks.estimate == 6 * 3  # other steps that were left out are not like it
        assert steps.estimate == pytest.approx(6 * 500 * 20, rel=0.2)
        assert run.counter.one_in(train) > 5


def test_the_rest_of_a_step_is_not_counted_where_evaluations_follow_each_other_closely() -> None:
    """It would cost more than last steps may."""

    def look() -> None:
        wait()
        run.now += WARNING * run.counting

    with running(random.Random(1).random, before_ns=4 * SECOND) as run:
        train, evaluate = Phase(1), Phase(2, "evaluate")
        for _ in range(3_000):
            run.enter(train)
            look()
            step(run, 20, MS)
            run.enter(evaluate)
            run.step()
            run.now += MS
        looks = min((each for each in run.counter.waits() if each.phase == 1), key=lambda each: each.count)
        assert run.counter.one_in(train) > 5
        assert looks.count < 1_000


def test_a_training_of_ten_steps_is_counted_after_a_compilation_that_cost_more_than_counting_may() -> None:
    """All but its first step, in which it is compiled."""
    with running(random.Random(1).random) as run:
        train, evaluate = Phase(1), Phase(2, "evaluate")
        run.counter._account.cost_ns += SECOND
        for number in range(10):
            if number % 5 == 0:
                run.enter(evaluate)
                for _ in range(20):
                    step(run, 3, 4 * MS)
            run.enter(train)
            if number == 0:
                run.now += 50 * SECOND
                for _ in range(10_000):
                    wait()
                    run.now += WARNING * run.counting
            step(run, 4, 15 * MS)
        assert run.counter.counted_steps(train) == 9
        assert counts(run, 1)[-1] == 9 * 4
        account = run.counter._account
        assert account.cost_ns - SECOND < 2 * FRESH_NS + RARE * run.now


def test_a_training_in_which_all_is_spent_costs_no_more_than_a_phase_that_is_new() -> None:
    with running(random.Random(1).random) as run:
        train = run.enter(Phase(1))
        run.counter._account.cost_ns += 100 * SECOND
        cost = sum(step(run, 100, 15 * MS) for _ in range(1_000))
        assert run.counter.counted_steps(train) > 1
        assert cost < 2 * FRESH_NS


@pytest.mark.parametrize("waits", [1, 40], ids=["all steps", "drawn steps"])
def test_what_is_done_around_an_evaluation_is_no_estimate_for_steps_that_were_left_out(waits: int) -> None:
    """Not even where the step around it was counted as any other, and then counting had to stop."""
    with running(random.Random(1).random, before_ns=4 * SECOND) as run:
        train, evaluate = Phase(1), Phase(2, "evaluate")
        for epoch in range(12):
            run.enter(train)
            for _ in range(100):
                step(run, waits, 4 * MS)
            wait()  # the epoch's loss
            run.enter(evaluate)
            for _ in range(5):
                step(run, 1, 4 * MS)
            run.enter(train)
            for _ in range(14):
                wait()  # a model that is moved
                run.now += WARNING * run.counting
            if epoch == 1:
                run.counter._account.cost_ns += 2 * SECOND
        steps, *around = sorted(
            (each for each in run.counter.waits() if each.phase == 1), key=lambda each: -(each.estimate or 0)
        )
        assert steps.estimate == pytest.approx(12 * 100 * waits, rel=0.1)
        assert len(around) == 2
        for each, true in zip(around, (12 * 14, 12), strict=True):
            assert each.estimate is not None and 0.7 * true < each.count <= each.estimate < 1.1 * true


def test_steps_that_evaluate_one_and_all_are_like_each_other() -> None:
    """What is counted in some of them is an estimate for all."""
    with running(random.Random(3).random, before_ns=4 * SECOND) as run:
        train, evaluate = Phase(1), Phase(2, "evaluate")
        for _ in range(600):
            run.enter(train)
            step(run, 40, 20 * MS)
            run.enter(evaluate)
            run.now += 100 * MS
            run.step()
        (found,) = (each for each in run.counter.waits() if each.phase == 1)
        assert run.counter.one_in(train) > 1
        assert found.estimate == pytest.approx(600 * 40, rel=0.1)


def test_models_that_are_made_and_moved_in_turn_are_counted_every_time() -> None:
    """A hundred waits every other second are more than the rests of steps may take of the time."""
    with running(random.Random(1).random, before_ns=5 * SECOND) as run:
        train, evaluate = Phase(1), Phase(2, "evaluate")
        for _ in range(10):
            run.enter(train)
            for _ in range(25):
                step(run, 5, 40 * MS)
            run.enter(evaluate)
            for _ in range(20):
                step(run, 5, 10 * MS)
            run.enter(train)
            for _ in range(136):
                wait()
                run.now += MS // 10 + WARNING * run.counting
            run.counter._account.cost_ns += SECOND // 10
        (moves,) = (each for each in run.counter.waits() if each.phase == 1 and each.count / each.steps > 5)
        assert moves.count == moves.estimate == 10 * 136


@pytest.mark.parametrize("seed", range(3))
def test_steps_with_a_rollout_in_each_are_drawn_as_a_whole(seed: int) -> None:
    """Were the part of a step after the rollout counted by itself, the part before would be missing in it."""

    def before() -> None:
        for _ in range(10):
            wait()
            run.now += WARNING * run.counting + MS // 10

    with running(random.Random(seed).random, before_ns=4 * SECOND) as run:
        train, rollout = Phase(1), Phase(2, "rollout")
        for _ in range(4_000):
            run.enter(train)
            step(run, 10, 4 * MS)
            before()
            run.enter(rollout)
            step(run, 1, MS)
        assert run.counter.one_in(train) > 5
        for each in run.counter.waits():
            if each.phase == 1:
                assert each.estimate == pytest.approx(40_000, rel=0.02)


def test_the_first_evaluation_after_a_long_training_that_waits_all_the_time_is_counted_whole() -> None:
    """All that counting may take is spent. An evaluation may take a ten thousandth of the time so far, 10 ms here."""
    with running(random.Random(1).random) as run:
        train, evaluate = Phase(1), Phase(2, "evaluate")
        run.enter(train)
        for _ in range(2_000):
            step(run, 40, 50 * MS)
        account = run.counter._account
        account.rare_ns, account.cost_ns = account.rare_ns + SECOND, account.cost_ns + 10 * SECOND  # all is spent
        run.enter(evaluate)
        cost = sum(step(run, 40, 50 * MS) for _ in range(60))
        assert counts(run, 2) == [60 * 40] and FRESH_NS < cost < FRESH_SHARE * account.time_ns
        for _ in range(600):
            cost += step(run, 40, 50 * MS)
        assert cost < 1.1 * FRESH_SHARE * account.time_ns
