"""The last step of a stay in a phase is counted by itself: what it does, no other step does."""

from __future__ import annotations

import random

import pytest

from syncscope.collect.count.stays import FEWEST, Stays
from tests.collect.count.program import MS, PRICES, Phase, Run, running, wait
from tests.collect.count.test_rare_phases import SECOND, counts, step

WARNING = int(PRICES.warning)


def tail(run: Run, waits: int, length_ns: int) -> None:
    """What follows the loop, in the last step."""
    for _ in range(waits):
        wait()
        run.now += length_ns // waits + WARNING * run.counting


def alternate(run: Run, rollout: Phase, train: Phase, stays: int, steps: int) -> None:
    for _ in range(stays):
        run.enter(rollout)
        for _ in range(steps):
            run.step()  # begins with a call
            for _ in range(6):
                wait()
                run.now += MS // 2 + WARNING * run.counting
        tail(run, 3, 2 * MS)
        run.enter(train)
        for _ in range(8):
            step(run, 20, 4 * MS)


@pytest.mark.parametrize("seed", range(4))
def test_what_follows_each_rollout_is_counted_every_time(seed: int) -> None:
    stays, steps = 40, 512
    with running(random.Random(seed).random, before_ns=SECOND) as run:
        rollout, train = Phase(1, "rollout"), Phase(2)
        alternate(run, rollout, train, stays, steps)
        assert run.counter.one_in(rollout) > 3
        lines = [each for each in run.counter.waits() if each.phase == 1]
        often, seldom = max(lines, key=lambda each: each.count), min(lines, key=lambda each: each.count)
        assert stays - 4 <= seldom.count / 3 <= stays  # not before two stays had as many steps
        assert seldom.estimate == pytest.approx(3 * stays, abs=12)
        assert often.estimate == pytest.approx(6 * stays * steps, rel=0.02)
        assert run.counter.overhead_share is not None and run.counter.overhead_share < 0.01


@pytest.mark.parametrize("seed", range(4))
def test_what_begins_each_round_of_updates_is_counted_every_time(seed: int) -> None:
    """It is part of the training's last step so far, whose waits are dense for so short a stay."""
    stays, steps = 60, 200
    with running(random.Random(seed).random, before_ns=SECOND) as run:
        rollout, train = Phase(1, "rollout"), Phase(2)
        for _ in range(stays):
            run.enter(rollout)
            for _ in range(steps):
                step(run, 6, 3 * MS)
            run.enter(train)
            tail(run, 3, 2 * MS)
            for _ in range(16):
                step(run, 40, 4 * MS)
        assert run.counter.one_in(train) > 2
        lines = [each for each in run.counter.waits() if each.phase == 2]
        seldom, often = sorted(lines, key=lambda each: each.count)
        assert stays - 4 <= seldom.count / 3 <= stays
        assert seldom.estimate == pytest.approx(3 * stays, rel=0.5)  # before, the last one may have been drawn
        assert often.estimate == pytest.approx(16 * 40 * stays, rel=0.1)


def test_stays_of_all_lengths_are_sampled_as_ever() -> None:
    draw = random.Random(3)
    with running(random.Random(1).random, before_ns=SECOND) as run:
        rollout, train = Phase(1, "rollout"), Phase(2)
        steps = 0
        for _ in range(60):
            steps += (length := draw.randrange(200, 600))
            alternate(run, rollout, train, 1, length)
        assert run.counter.counted_steps(rollout) < steps / 5
        (often,) = [each for each in counts(run, 1) if each > 600]
        assert often < 6 * steps / 5


def test_after_a_window_in_the_last_step_what_was_planned_goes_on() -> None:
    """The rest of that step must not stand for those that were left out."""
    with running(random.Random(2).random, before_ns=SECOND) as run:
        rollout, train = Phase(1, "rollout"), Phase(2)
        alternate(run, rollout, train, 20, 512)
        run.enter(rollout)
        for _ in range(512):
            run.step()
            wait()
            run.now += 3 * MS
        sampling = run.counter.tally.of(rollout).sampling
        assert sampling.counts_last and sampling.on
        run.counter.suspend()
        run.now += 100 * MS
        run.counter.resume()
        assert not sampling.counts_last


def test_a_stay_is_foreseen_once_two_had_as_many_steps() -> None:
    stays = Stays()
    steps, foreseen = 0, []
    for length in (7, 7, 7, 9, 9, 9, FEWEST - 1, FEWEST - 1, FEWEST - 1):
        foreseen.append(stays.enter(steps, 0))
        steps += length
        stays.leave(steps)
        stays.enter(steps, 0)  # and no step ends
        stays.leave(steps)
    assert foreseen == [0, 0, 7, 7, 0, 9, 9, 0, 0]


def test_nothing_is_foreseen_of_steps_that_are_others_from_now_on() -> None:
    stays = Stays()
    for steps in (0, 5, 10):
        foreseen = stays.enter(steps, 0)
        stays.leave(steps + 5)
    assert foreseen == 5
    stays.begin_again(0)
    assert stays.enter(3, 0) == 0


def test_stays_without_a_step_make_no_round_shorter() -> None:
    stays, rounds = Stays(), []
    for now, length in ((10, 5), (30, 0), (50, 5), (60, 0), (75, 5)):
        stays.enter(0, now)
        stays.leave(length)
        rounds.append(stays.round_ns)
    assert rounds == [10, 20, 20, 30, 30]
