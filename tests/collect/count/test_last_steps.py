"""The first step of a stay in a phase and its last one are counted by themselves: what they do, no other step does."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest

from syncscope.collect.count import spending
from syncscope.collect.count.sampled import ITSELF
from syncscope.collect.count.stays import FEWEST, Stays
from syncscope.schema.counting import PhaseKind
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
        drawn = 3 * run.counter.one_in(rollout)  # one of the first two, for all of those around it
        assert seldom.estimate == pytest.approx(3 * stays, abs=12 + drawn)
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


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("kind", ["generate", "rollout", "evaluate"])
def test_what_the_first_step_of_each_stay_does_is_counted_every_time(seed: int, kind: PhaseKind) -> None:
    """A prompt is read once a text, of as many words as there are. The steps' waits are dense."""
    stays, draw = 12, random.Random(seed)
    with running(draw.random) as run:
        outer, words, steps = Phase(1, "evaluate"), Phase(2, kind), 0
        for _ in range(stays):
            run.enter(outer)
            step(run, 2, 40 * MS)
            run.enter(words)
            steps += (length := draw.randrange(150, 300))
            for number in range(length):
                run.step()  # begins with a call
                tail(run, 2, 2 * MS) if number == 0 else None
                for _ in range(100):
                    wait()
                    run.now += WARNING * run.counting
                run.now += 25 * MS
            run.end_loop()
        assert run.counter.one_in(words) > 3
        often, prompts = sorted((each for each in run.counter.waits() if each.phase == 2), key=lambda each: -each.count)
        assert prompts.count == 2 * stays
        assert prompts.estimate == pytest.approx(2 * stays, abs=1)
        assert often.estimate == pytest.approx(100 * steps, rel=0.02)
        assert run.counter.overhead_share is not None and run.counter.overhead_share < 0.01


@pytest.mark.parametrize("seed", range(4))
def test_what_comes_once_an_epoch_is_counted_though_steps_are_dear(seed: int) -> None:
    """A picture is drawn after the last step of each epoch. Counting one takes more than a thousandth of it."""
    epochs, dear = 15, 14_000
    with running(random.Random(seed).random, replace(PRICES, warning=float(dear)), before_ns=5 * SECOND) as run:
        train, evaluate = Phase(1), Phase(2, "evaluate")
        for _ in range(epochs):
            run.enter(train)
            for _ in range(29):
                for _ in range(188):
                    wait()
                    run.now += dear * run.counting
                run.step(62 * MS)
            wait()
            run.now += 400 * MS
            run.enter(evaluate)
            for _ in range(4):
                step(run, 7, 25 * MS)
        assert run.counter.one_in(train) > 3
        often, picture = sorted((each for each in run.counter.waits() if each.phase == 1), key=lambda each: -each.count)
        assert epochs - 4 <= picture.count <= epochs
        assert picture.estimate == pytest.approx(epochs, abs=4 + run.counter.one_in(train))
        assert often.estimate == pytest.approx(188 * 29 * epochs, rel=0.05)
        assert run.counter.overhead_share is not None and run.counter.overhead_share < 0.012


def test_stays_of_all_lengths_are_sampled_as_ever() -> None:
    draw = random.Random(3)
    with running(random.Random(1).random, before_ns=SECOND) as run:
        rollout, train = Phase(1, "rollout"), Phase(2)
        steps, stays = 0, 60
        for _ in range(stays):
            steps += (length := draw.randrange(200, 600))
            alternate(run, rollout, train, 1, length)
        assert run.counter.counted_steps(rollout) < steps / 5 + stays  # the first one of each, too
        (often,) = [each for each in counts(run, 1) if each > 600]
        assert often < 6 * (steps / 5 + stays)


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


def foreseen(stays: Stays, steps: int, follower: int, now_ns: int = 0) -> int | None:
    """Leave after ``steps``. Returns at how many of them the last step of the next stay begins."""
    stays.leave(steps, follower, now_ns, lambda *_: True)
    until = stays.until_last(steps)
    return steps + until if until is not None else None


def test_a_stay_is_foreseen_once_two_had_as_many_steps() -> None:
    stays, steps, found = Stays(), 0, []
    for length in (7, 7, 7, 9, 9, 9, FEWEST - 1, FEWEST - 1):
        steps += length
        last = foreseen(stays, steps, follower=2)
        assert foreseen(stays, steps, follower=2) == last  # it came back, and no step ended
        found.append(None if last is None else last - steps)
    assert found == [None, 7, 7, None, 9, 9, None, None]


def test_the_first_steps_may_not_have_been_told() -> None:
    """The phase of a rollout is only known after some of its steps."""
    stays = Stays()
    assert [foreseen(stays, steps, follower=2) for steps in (2046, 4094, 6142)] == [None, 6140, 8190]
    assert stays.span(8190) == 1


def test_long_stays_may_differ_by_a_few_steps() -> None:
    """A critic is called once more before some updates."""
    stays = Stays()
    assert [foreseen(stays, steps, follower=2) for steps in (2050, 4101, 6151)] == [None, 6151, 8201]
    assert (stays.span(8200), stays.span(8201)) == (0, 2)
    assert foreseen(stays, 6151 + 2060, follower=2) is None


def test_another_phase_in_between_changes_nothing() -> None:
    """Updates come after 2,048 steps of the rollout each, evaluations after 3,000."""
    stays = Stays()
    assert foreseen(stays, 2048, follower=2) is None
    assert foreseen(stays, 3000, follower=3) is None
    assert foreseen(stays, 4096, follower=2) == 6144
    assert foreseen(stays, 6000, follower=3) == 6144
    assert stays.until_last(6144) == 0
    assert stays.until_last(6145) == 9000 - 6145


def test_nothing_is_foreseen_of_steps_that_are_others_from_now_on() -> None:
    stays = Stays()
    assert [foreseen(stays, steps, follower=2) for steps in (5, 10)] == [None, 15]
    stays.begin_again(1)
    assert stays.until_last(3) is None
    assert [foreseen(stays, steps, follower=2) for steps in (6, 11)] == [None, 16]


def test_what_is_asked_is_the_time_from_leaving_to_leaving() -> None:
    stays = Stays()
    asked: list[int] = []

    def may_foresee(_: int, round_ns: int) -> bool:
        asked.append(round_ns)
        return True

    for now_ns, steps in ((10, 5), (30, 5), (50, 10), (75, 15)):
        stays.leave(steps, 2, now_ns, may_foresee)
    assert asked == [40, 25]


def overspend(run: Run) -> None:
    """Following the phases took far more than counting may take, so counting stops wherever nothing is rare."""
    run.counter._account.cost_ns += 0.02 * run.now + 100 * MS


@pytest.mark.parametrize("kind", ["evaluate", "rollout"])
@pytest.mark.parametrize("reads", [False, True], ids=["", "reads weights"])
def test_a_model_that_is_moved_after_an_evaluation_is_counted_also_where_counting_had_to_stop(
    kind: PhaseKind, reads: bool
) -> None:
    """The training's own waits are so rare that no steps of it are drawn. Between two trainings the program reads
    weights, perhaps, and moves them."""
    with running(random.Random(1).random, before_ns=SECOND) as run:
        train, other, checkpoint = Phase(1), Phase(2, kind), Phase(3, "checkpoint")
        for _ in range(3):
            run.enter(train)
            for _ in range(200):
                step(run, 1, 8 * MS)
            overspend(run)
            run.enter(other)
            for _ in range(30):
                step(run, 1, 5 * MS)
            run.enter(train)
            if reads:
                run.now += MS // 5
                run.enter(checkpoint)
                run.now += 40 * MS
                run.enter(train)
            tail(run, 100, 10 * MS)
        assert run.counter.tally.of(train).sampling.one_in == 1
        moves = max((each for each in run.counter.waits() if each.phase == 1), key=lambda each: each.count / each.steps)
        assert moves.count == 300


def test_what_follows_each_rollout_is_counted_also_where_counting_had_to_stop() -> None:
    """A policy on the CPU waits in none of its steps, and goes to the device after the last."""
    stays = 12
    with running(random.Random(1).random, before_ns=SECOND) as run:
        rollout, train = Phase(1, "rollout"), Phase(2)
        for _ in range(stays):
            run.enter(rollout)
            for _ in range(600):
                run.step(MS // 4)
            tail(run, 14, 2 * MS)
            run.enter(train)
            for _ in range(200):
                step(run, 1, 5 * MS)
            overspend(run)
        assert run.counter.tally.of(rollout).sampling.one_in == 1
        (moves,) = (each for each in run.counter.waits() if each.phase == 1)
        assert moves.estimate is not None
        assert 14 * (stays - 3) <= moves.estimate <= 14 * stays  # not before two stays had as many steps


def test_a_first_step_that_comes_while_counting_has_stopped_stands_for_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    """All is spent when its stay begins. Were it to stand for others, what is counted once that goes on would, too."""
    monkeypatch.setattr(spending, "FRESH_SHARE", 0.0)
    seen = set()
    with running(random.Random(1).random, before_ns=SECOND) as run:
        collect, compute = Phase(1, "evaluate"), Phase(2, "evaluate")
        for stay in range(40):
            run.counter._account.cost_ns += 20 * MS * (stay > 4)
            run.enter(collect)
            for _ in range(100):
                run.step()  # begins with a call
                state = run.counter.tally.of(collect)
                if state.sampling.counts_last:
                    seen.add((run.counter._paused, state.sampling.left, state.weight))
                for _ in range(20):
                    wait()
                    run.now += WARNING * run.counting
                run.tracker.followed_ns += 60_000
                run.now += 10 * MS
            run.end_loop()
            tail(run, 4, 2 * MS)
            run.enter(compute)
            run.step()
            tail(run, 200, 7 * MS)
            run.end_loop()
    assert (True, 1, ITSELF) in seen
    assert {(left, weight) for _, left, weight in seen} == {(1, ITSELF)}
