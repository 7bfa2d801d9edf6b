"""Dense waits: which steps are drawn, what is estimated from them, and that counting costs little."""

from __future__ import annotations

import math
import os
import random
import statistics
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from syncscope.collect.count.sampling import FREE_OUTS, NEW_STEPS, OUTS_PER_DOUBLING, Draw, Sampling
from tests.collect.count.program import MS, PRICES, Phase, only, running, wait, wrapped


@pytest.mark.parametrize("seed", range(3))
def test_frequencies_of_drawn_steps_are_inside_their_interval(seed: int) -> None:
    chance = random.Random(100 + seed)
    with running(random.Random(seed).random) as run:
        train = run.enter(Phase(1))
        for _ in range(10_000):
            wait()
            if chance.random() < 0.1:
                wait()
            for _ in range(3):
                wait()
            run.step(300_000)
        found = [each for _, each in sorted(run.lines().items())]
    assert 5 < run.counter.one_in(train) < 50
    for each, true in zip(found, (1, 0.1, 3), strict=True):
        assert each.estimate is not None
        assert abs(each.estimate / train.steps - true) <= 4 * each.variance**0.5 / train.steps
        assert 0 < each.variance**0.5 < 0.5 * each.estimate


@pytest.mark.parametrize("seed", range(5))
def test_what_no_drawn_step_had_may_be_in_those_left_out(seed: int) -> None:
    with running(random.Random(seed).random) as run:
        train = run.enter(Phase(1))
        for number in range(10_000):
            for _ in range(4):
                wait()
            if number % 2_500 == 0:  # the first step is counted, and hardly another of these
                wait()
            run.step(300_000)
        found = [each for _, each in sorted(run.lines().items())]
    one_in = run.counter.one_in(train)
    assert found[1].estimate is not None and one_in > 5
    assert found[1].variance ** 0.5 > one_in
    assert abs(found[1].estimate - 4) <= 2 * found[1].variance ** 0.5


def test_steps_left_out_since_the_last_counted_one_make_what_is_estimated_uncertain() -> None:
    """Counting pauses after the first steps, and never goes on: five of them tell little of the others."""
    with running() as run:
        train = run.enter(Phase(1))
        for number in range(205):
            for _ in range(16 if number in (0, 3) else 1):
                wait()
            run.step(MS)
            if number == 4:  # also what a phase may cost however much was spent before
                run.counter._account.cost_ns += 1e12
                run.counter.tally.of(train).cost_ns += 1e12
        (found,) = run.counter.waits()
        counted, steps = run.counter.counted_steps(train), train.steps
    assert counted < 10 and found.estimate is not None
    assert found.estimate == pytest.approx(found.count * steps / counted, rel=0.1)
    assert abs(found.estimate - 235) <= 2 * found.variance**0.5


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize(("price", "step_ns"), [(93_000, 19 * MS), (30_000, MS), (10_000, 6 * MS)])
def test_steps_in_which_counting_stops_do_not_lower_the_frequencies(seed: int, price: int, step_ns: int) -> None:
    """Where all of it is dear, counting stops again and again: in the midst of a step, and of a block of steps."""
    dear = replace(PRICES, warning=float(price))
    with running(random.Random(seed).random, dear) as run:
        train = run.enter(Phase(1))
        left, chance = 0, random.Random(seed)
        for _ in range(3_000):
            wait()
            for _ in range(20):
                wait()
                run.now += price * run.counting
                if chance.random() < 0.002:
                    run.counter.tick()
            wait()
            run.now += step_ns
            run.tracker.unheard += 1
            if not left:
                run.tracker.hear()
                left = run.counter.stepped(train) + 1
            left -= 1
        run.tracker.hear()
        found = [each for _, each in sorted(run.lines().items())]
    assert 10 < run.counter.counted_steps(train) < 1_500
    for each, true in zip(found, (1, 20, 1), strict=True):
        assert each.estimate is not None
        assert abs(each.estimate / train.steps - true) <= 4 * each.variance**0.5 / train.steps


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("inside", [False, True])
@pytest.mark.parametrize(("price", "step_ns"), [(93_000, 19 * MS), (30_000, MS), (10_000, 6 * MS)])
def test_counting_that_stops_in_one_phase_does_not_change_the_frequencies_of_another(
    seed: int, inside: bool, price: int, step_ns: int
) -> None:
    """Evaluations between the steps of the training, or ``inside`` of them."""
    dear = replace(PRICES, warning=float(price))
    chance = random.Random(seed)

    def work(waits: int) -> None:
        for _ in range(waits):
            wait()
            run.now += price * run.counting + step_ns // waits
            if chance.random() < 0.002:
                run.counter.tick()

    with running(chance.random, dear) as run:
        train, evaluate = Phase(1), Phase(2, "evaluate")
        run.enter(train)
        for number in range(1_500):
            work(9)
            if inside or number % 5 == 0:
                run.enter(evaluate)
                for _ in range(1 if inside else 6):
                    work(15)
                    run.step()
                run.enter(train)
            work(9)
            run.step()
        found = list(run.counter.waits())
    for phase, true in ((train, 18), (evaluate, 15)):
        (mine,) = (each for each in found if each.phase == phase.number)
        assert run.counter.counted_steps(phase) > 5
        assert mine.estimate is not None
        assert abs(mine.estimate / phase.steps - true) <= max(4 * mine.variance**0.5 / phase.steps, 0.01 * true)


@pytest.mark.parametrize("seed", range(3))
def test_steps_after_one_that_was_too_dear_to_count_are_estimated_too(seed: int) -> None:
    with running(random.Random(seed).random) as run:
        run.now += 500 * MS
        train = run.enter(Phase(1))
        for number in range(60):
            for _ in range(10_000 if number in (0, 1, 5) else 0):  # as where a function is compiled
                wait()
                run.now += 20_000 + int(PRICES.warning) * run.counting
            wait()
            run.step(16 * MS)
        each = run.lines()[max(run.lines())]
    assert run.counter.counted_steps(train) < 40
    assert each.estimate is not None
    assert abs(each.estimate - 60) <= 2 * each.variance**0.5


@pytest.mark.parametrize(
    ("waits", "step_ns", "steps"),
    [(6, 470_000, 8_000), (200, 2 * MS, 2_000), (2_000, 25 * MS, 400), (1, 20_000, 50_000), (20_000, 200 * MS, 60)],
)
def test_counting_costs_at_most_one_part_in_a_hundred(waits: int, step_ns: int, steps: int) -> None:
    with running(random.Random(1).random) as run:
        train = run.enter(Phase(1))
        cost = switches = 0
        for _ in range(steps):
            for _ in range(waits):
                took = int(PRICES.warning) * run.counting
                wait()
                run.now += step_ns // waits + took
                cost += took
            switched = int((run.counter._switch.turns - switches) * PRICES.switch / 2)
            cost, switches = cost + switched, run.counter._switch.turns
            run.step(switched)
        run.counter.close()
        spent = run.counter.overhead_share
    assert cost <= 0.01 * run.now + 10 * MS  # the grace of the begin
    assert spent == pytest.approx(cost / run.now, rel=0.05)
    assert run.counter.counted_steps(train) > 2


def test_copies_cost_at_most_one_part_in_a_hundred_though_they_are_wrapped() -> None:
    with running(random.Random(1).random) as run:
        train = run.enter(Phase(1))
        host = run.torch.Tensor()
        cost = switches = outs = 0
        taken_out = 0
        for _ in range(5_000):
            for _ in range(200):
                price = PRICES.warning + 3 * PRICES.passed if run.counting else PRICES.gate * wrapped(run)
                host.to("cuda")
                run.now += 10_000 + int(price)
                cost += int(price)
            taken_out += not wrapped(run)
            switch = run.counter._switch
            switched = (switch.turns - switches) * PRICES.switch / 2 + (switch.outs - outs) * PRICES.out
            switches, outs = switch.turns, switch.outs
            cost += int(switched)
            run.step(int(switched))
        run.counter.close()
        spent = run.counter.overhead_share
    assert cost <= 0.01 * run.now + 10 * MS
    assert spent == pytest.approx(cost / run.now, rel=0.1)
    assert taken_out > 4_000 and run.counter.counted_steps(train) > 10


def test_wrappers_that_cost_little_stay_in_steps_that_are_not_drawn() -> None:
    with running(lambda: 0.5) as run:
        run.enter(Phase(1))
        while run.counting and run.tracker.current.steps < 20:
            for _ in range(100):
                wait()
            run.torch.Tensor(True).to("cuda")
            run.step(MS)
        assert not run.counting and wrapped(run)
        assert 4 < run.tracker.current.steps < 20
        before = run.counter.waits()
        wait()
        run.torch.Tensor().to("cuda", non_blocking=True)
        run.torch._C._cuda_synchronize()
        assert run.counter.waits() == before


def test_runs_get_longer_once_wrappers_were_taken_out_often() -> None:
    sampling = Sampling(Draw(lambda: 0.99), always=False)
    lengths: dict[int, Any] = {}
    for outs in (0, FREE_OUTS + OUTS_PER_DOUBLING, FREE_OUTS + 3 * OUTS_PER_DOUBLING):
        for _ in range(NEW_STEPS + 3):
            sampling.next_block(1, 2e6, 1e6 if sampling.on else 0, 1e5, prices=PRICES, outs=outs)
            lengths[outs] = sampling.left if sampling.on else lengths.get(outs)
    assert list(lengths.values()) == [1, 2, 8]


def test_fewer_steps_are_drawn_where_following_them_takes_much_of_what_may_be_taken() -> None:
    drawn = {}
    for following in (0.0, 1_500.0, 1_000_000.0):
        sampling = Sampling(Draw(lambda: 0.5), always=False)
        for _ in range(400):
            cost = 20_000 if sampling.on else 0
            sampling.next_block(1, 300_000, cost, 0, prices=PRICES, outs=0, followed_ns=following)
        drawn[following] = sampling.one_in
    assert drawn[0.0] < drawn[1_500.0] < drawn[1_000_000.0] < 10 * drawn[0.0]


def test_steps_of_milliseconds_are_looked_at_together_once_their_waits_are_rare() -> None:
    with running() as run:
        train = run.enter(Phase(1))
        heard = 0
        while train.steps < 400:
            left = run.counter.stepped(train)
            heard += 1
            for _ in range(left + 1):
                wait()
                run.now += 6 * MS
                train.steps += 1
        assert heard < 60
        assert run.counter.counted_steps(train) >= 400
        assert only(run).count >= 400


def test_a_wait_in_one_of_ten_short_steps_is_not_dense() -> None:
    with running() as run:
        train = run.enter(Phase(1))
        for step in range(300):
            if step % 10 == 0:
                wait()
            run.step(350_000)
        assert run.counter.counted_steps(train) == 300
        assert (only(run).count, only(run).estimate) == (30, 30.0)


@pytest.mark.parametrize("seed", range(4))
def test_what_is_estimated_of_all_steps_is_near_the_truth_also_where_few_were_drawn(seed: int) -> None:
    with running(random.Random(seed).random) as run:
        train = run.enter(Phase(1))
        for _ in range(300):
            for _ in range(200):
                wait()
            run.step(2 * MS)
        assert run.counter.one_in(train) > 20
        assert only(run).estimate == pytest.approx(300 * 200, rel=0.01)


def train_densely(run: Any) -> Phase:
    """Twenty steps of a hundred waits each, so that steps are drawn."""
    train = run.enter(Phase(1))
    for _ in range(20):
        for _ in range(100):
            wait()
        run.step(MS)
    return train


def test_rare_phases_are_counted_whole_beside_one_that_is_sampled() -> None:
    with running(lambda: 0.5) as run:
        train = train_densely(run)
        assert not run.counting
        checkpoint = run.enter(Phase(2, "checkpoint"))
        for _ in range(100):
            wait()
        run.now += 10 * MS
        run.enter(train)
        assert not run.counting
        assert [each.count for each in run.counter.waits() if each.phase == 2] == [100]
        assert run.counter.one_in(checkpoint) == 1 < run.counter.one_in(train)


def test_a_step_without_an_end_is_counted_in_part_and_goes_on_at_a_tick() -> None:
    with running() as run:
        phase = run.enter(Phase(1, "other"))
        for _ in range(100_000):
            run.now += 10_000 + 3_000 * run.counting
            read()
        assert not run.counting
        spent = run.counter.overhead_share
        assert spent is not None and spent < 0.02
        run.now += 1_000 * MS
        run.counter.tick()
        assert run.counting
        before = only(run).count
        read()
        assert only(run).count == before + 1
        assert run.counter.one_in(phase) > 5


def test_a_step_that_lasts_is_counted_also_where_something_is_read_in_the_midst_of_it() -> None:
    """After the last step a program reads its best weights, and moves a model."""
    with running(lambda: 0.5) as run:
        train = train_densely(run)
        run.now += 500 * MS
        run.counter.tick()
        run.enter(Phase(2, "checkpoint"))
        run.now += 100 * MS
        run.counter.tick()
        run.enter(train)
        assert not run.counting
        run.now += 400 * MS
        run.counter.tick()
        assert run.counting


def test_counting_does_not_go_on_in_the_midst_of_an_operator() -> None:
    """C++ would print its warnings on stderr, since no frame of Python's hears them."""
    operators: dict[str, Any] = {}
    file = os.path.join("site-packages", "torch", "_ops.py")
    exec(compile("def call(inside): inside()", file, "exec"), operators)
    with running() as run:
        run.enter(Phase(1, "other"))
        for _ in range(100_000):
            run.now += 10_000 + 3_000 * run.counting
            read()
        run.now += 1_000 * MS
        operators["call"](run.counter.tick)
        assert not run.counting
        run.counter.tick()
        assert run.counting


def test_dense_steps_after_hours_of_rare_waits_cannot_spend_what_was_saved() -> None:
    with running() as run:
        run.enter(Phase(1))
        for _ in range(100):
            run.step(100_000 * MS)
        run.enter(Phase(2))
        begin = run.now
        while run.counting and run.now - begin < 5_000 * MS:
            run.now += 13_000
            wait()
        assert run.now - begin < 500 * MS


def read() -> None:
    wait()


def test_runs_that_cost_more_than_their_prices_are_drawn_less_often() -> None:
    """What Python must learn anew shows in the steps, and nowhere else."""
    rates = {}
    for extra in (0.0, 3e6):
        sampling = Sampling(Draw(lambda: 0.99), always=False)
        for _ in range(60):
            length = sampling.left * 2e6 + (extra if sampling.on else 0.0)
            cost = sampling.left * 1e6 if sampling.on else 0.0
            sampling.next_block(sampling.left, length + cost, cost, 1e5, prices=PRICES, outs=0)
        rates[extra] = sampling.one_in
        assert (sampling.run_ns > 0) == (extra > 0)
    assert rates[3e6] > 2 * rates[0.0]


@pytest.mark.parametrize("seed", range(5))
def test_steps_of_very_different_lengths_do_not_make_counting_look_dear(seed: int) -> None:
    """Steps of 10 to 30 ms, of which counting takes 0.15 ms."""
    draw, dearest = random.Random(seed), []
    sampling = Sampling(Draw(draw.random), always=False)
    for _ in range(3_000):
        length = sum(draw.uniform(10e6, 30e6) for _ in range(sampling.left))
        cost = sampling.left * 1.5e5 if sampling.on else 0.0
        sampling.next_block(sampling.left, length + cost, cost, 1e3, prices=PRICES, outs=0)
        dearest.append(sampling.one_in)
    usual = (1.5e5 + PRICES.switch) / (0.003 * 20e6)
    assert statistics.mean(dearest) < 1.7 * usual


def draw_for_long(seed: int, length: Callable[[int, random.Random], float], cost: float, shown: float) -> float:
    """One step in how many is counted of 3,000, each of a ``length`` by its number. Counting one is said to take
    ``cost`` ns, of which ``shown`` are in its length."""
    draw, steps, counted = random.Random(seed), 0, 0
    sampling = Sampling(Draw(draw.random), always=False)
    while steps < 3_000:
        left, on = sampling.left, sampling.on
        took = sum(length(steps, draw) for _ in range(left)) + shown * left * on
        steps, counted = steps + left, counted + left * on
        sampling.next_block(left, took, cost * left * on, 1e3, prices=PRICES, outs=0)
    return steps / counted


def test_a_host_that_gets_slower_and_faster_does_not_make_counting_look_dear() -> None:
    """Steps take 50 to 150 ms in turn, over some minutes each."""

    def length(number: int, draw: random.Random) -> float:
        return 100e6 * (1 + math.sin(number / 100) / 2) * max(draw.gauss(1, 0.15), 0.4)

    drawn = [draw_for_long(seed, length, cost=8e5, shown=8e5) for seed in range(10)]
    assert statistics.mean(drawn) < 1.2 * (8e5 + PRICES.switch) / (0.003 * 100e6)


def test_steps_that_differ_are_drawn_as_often_as_their_prices_allow() -> None:
    """A cost that is believed by chance would make runs so few that long nothing tells better."""

    def length(number: int, draw: random.Random) -> float:
        return max(draw.gauss(100e6, 25e6), 40e6)

    drawn = [draw_for_long(seed, length, cost=6e5, shown=0.0) for seed in range(10)]
    assert statistics.mean(drawn) < 1.1 * (6e5 + PRICES.switch) / (0.003 * 100e6)


def test_while_counting_is_paused_steps_pass_unheard_and_without_wrappers() -> None:
    with running(prices=replace(PRICES, warning=60_000.0, gate=1_000.0)) as run:
        train = run.enter(Phase(1))
        run.step(MS)
        while run.counting and train.steps < 10:
            for _ in range(200):
                run.torch.Tensor().to("cuda")
                run.now += 10_000
            run.step()
        assert not run.counting
        looks = [run.counter.stepped(train)]
        while sum(looks) < 3_000:
            train.steps += looks[-1]  # these are not heard
            run.now += looks[-1] * 2 * MS
            run.step(2 * MS)
            looks.append(run.counter.stepped(train))
            if len(looks) == 4:
                assert not wrapped(run)
        assert len(looks) < 130 and max(looks) > 20
        for _ in range(200):
            run.torch.Tensor().to("cuda")
        assert run.counter.counted_steps(train) > 2  # it went on
