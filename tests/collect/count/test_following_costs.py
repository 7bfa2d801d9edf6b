"""What following the phases takes is kept apart: it leaves less for counting, and never stops it."""

from __future__ import annotations

import random

import pytest

from syncscope.collect.count.account import CAP, FLOOR, GRACE_NS
from syncscope.collect.count.sampling import Averages
from tests.collect.count.program import MS, PRICES, Phase, Run, running, wait


def follow(run: Run, steps: int, share: float, phase: Phase) -> None:
    """Make steps of a millisecond with twenty waits, of which following takes this share."""
    for _ in range(steps):
        for _ in range(20):
            wait()
        run.tracker.followed_ns += share * MS
        run.step(1 * MS)
    assert run.tracker.current is phase


@pytest.mark.parametrize("share", [CAP, 0.02, 0.2])
def test_counting_goes_on_where_following_alone_takes_more_than_may_be_taken(share: float) -> None:
    with running(random.Random(1).random) as run:
        train = run.enter(Phase(1))
        follow(run, 20_000, share, train)
        before = run.counter.counted_steps(train)
        follow(run, 20_000, share, train)
        after = run.counter.counted_steps(train)
        found = next(each for each in run.counter.waits() if each.phase == 1)
    least = FLOOR * 20_000 * MS / (20 * PRICES.warning + PRICES.switch + PRICES.out)
    assert after - before > least / 4
    assert found.estimate is not None
    assert abs(found.estimate / train.steps - 20) <= max(4 * found.variance**0.5 / train.steps, 0.1)


def test_counting_takes_less_where_following_takes_much() -> None:
    counted, costs = [], []
    for share in (0.0, 0.006, 0.05):
        with running(random.Random(1).random) as run:
            train = run.enter(Phase(1))
            follow(run, 30_000, share, train)
            account = run.counter._account
            counted.append(run.counter.counted_steps(train))
            costs.append((account.cost_ns - account.followed_ns - GRACE_NS) / account.time_ns)
            assert account.followed_ns == pytest.approx(share * account.time_ns, rel=0.02, abs=1)
    assert counted[0] > counted[1] >= counted[2] > 0
    assert costs[1] < 0.003 and costs[2] < 0.003


def test_what_the_count_says_that_it_costs_has_what_following_takes() -> None:
    with running(random.Random(1).random) as run:
        train = run.enter(Phase(1))
        follow(run, 5_000, 0.015, train)
        assert run.counter.overhead_share is not None
        assert 0.015 < run.counter.overhead_share < 0.025


def test_what_following_takes_while_a_window_records_is_not_the_counts() -> None:
    with running(random.Random(1).random) as run:
        train = run.enter(Phase(1))
        follow(run, 10, 0.0, train)
        run.counter.suspend()
        follow(run, 10, 0.5, train)
        run.counter.resume()
        follow(run, 10, 0.0, train)
        assert run.counter._account.followed_ns == 0


def test_what_following_takes_is_a_mean_over_steps_and_not_over_blocks_of_them() -> None:
    """The first steps read the program's bytecode. Then sixty steps pass unheard, which are one block."""
    averages = Averages()
    averages.add_length(2 * MS, 2, 1_800_000.0)
    averages.add_length(61 * MS, 61, 61 * 10_000.0)
    assert averages.following == pytest.approx((1_800_000 + 610_000) / 63)
