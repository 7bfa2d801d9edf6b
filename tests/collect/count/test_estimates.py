"""What drawn steps tell of all of them: right on average, and within its interval as often as that says."""

from __future__ import annotations

import math
import random
import statistics
from collections.abc import Callable
from dataclasses import dataclass

import pytest

from syncscope.collect.count.phase_tally import PhaseTally
from syncscope.collect.count.places import Place
from syncscope.collect.count.sampling import Draw
from syncscope.collect.count.weights import Weights
from syncscope.rules.base.counted_lines import Frequency
from tests.collect.count.program import MS, PRICES, Phase, make_dense_steps, running, wait

RUNS = 30
WARNING = int(PRICES.warning)

Pattern = Callable[[random.Random, int], Callable[[int], tuple[int, int]]]
"""Makes what says how often a step waits at the line in question, and how often at others."""


@dataclass(frozen=True)
class Told:
    """Of one line in one run."""

    true: int
    estimate: float
    low: float
    high: float


def read() -> None:
    wait()


def tell(pattern: Pattern, seed: int, steps: int, step_ns: int) -> Told:
    chance = random.Random(seed + 1_000)
    waits_of, true = pattern(chance, steps), 0
    with running(random.Random(seed).random) as run:
        train = run.enter(Phase(1))
        for step in range(steps):
            here, others = waits_of(step)
            for _ in range(here):
                read()
            for _ in range(others):
                wait()
            true += here
            run.now += (here + others) * WARNING * run.counting
            run.step(step_ns)
        found, counted = run.lines(), run.counter.counted_steps(train)
    assert counted < steps / 2
    one = found.get((1, read.__code__.co_firstlineno + 1))
    if one is None:
        return Told(true, 0.0, 0.0, 0.0)
    assert one.estimate is not None
    spread = Frequency(one.estimate, math.sqrt(one.variance), counted - 1)
    low, high = spread.bounds
    assert low is not None and high is not None
    return Told(true, one.estimate, low, high)


def in_some(chance: float) -> Pattern:
    return lambda draw, steps: lambda step: (int(draw.random() < chance), 12)


def in_every(period: int) -> Pattern:
    def pattern(draw: random.Random, steps: int) -> Callable[[int], tuple[int, int]]:
        first = draw.randrange(period)
        return lambda step: (int(step % period == first), 12)

    return pattern


def in_bursts(length: int, period: int) -> Pattern:
    def pattern(draw: random.Random, steps: int) -> Callable[[int], tuple[int, int]]:
        first = draw.randrange(period)
        return lambda step: (int((step - first) % period < length), 12)

    return pattern


def in_the_first(number: int) -> Pattern:
    return lambda draw, steps: lambda step: (int(step < number), 12)


def after(share: float) -> Pattern:
    return lambda draw, steps: lambda step: (int(step >= share * steps), 12)


def in_dear_steps(draw: random.Random, steps: int) -> Callable[[int], tuple[int, int]]:
    """Waits of other lines come in the same steps, and make those dear."""

    def waits_of(step: int) -> tuple[int, int]:
        dear = draw.random() < 0.1
        return int(dear), 100 if dear else 10

    return waits_of


def of_many_kinds(draw: random.Random, steps: int) -> Callable[[int], tuple[int, int]]:
    return lambda step: (int(draw.lognormvariate(0.5, 1)), 12)


@pytest.mark.parametrize(
    "pattern",
    [
        in_some(0.02), in_some(0.5), in_some(0.95), in_every(10), in_bursts(30, 300), in_bursts(5, 100),
        in_the_first(10), in_the_first(300), after(0.25), in_dear_steps, of_many_kinds,
    ],
    ids=[
        "in one of 50", "in half", "in most", "in every tenth", "in long bursts", "in short bursts",
        "in the first ten", "in the first 300", "in the last three quarters", "in dear steps", "several a step",
    ],
)  # fmt: skip
def test_what_is_told_is_right_on_average_and_within_its_interval(pattern: Pattern) -> None:
    told = [tell(pattern, seed, 2_000, MS) for seed in range(RUNS)]
    errors = [each.estimate - each.true for each in told]
    noise = statistics.stdev(errors) / math.sqrt(RUNS)
    assert abs(statistics.mean(errors)) <= max(2.6 * noise, 0.01 * told[0].true)
    seen = [each for each in told if each.estimate]
    inside = sum(each.low <= each.true <= each.high for each in seen)
    assert inside >= 0.85 * len(seen)  # 95 % of many


def test_what_waits_in_each_step_is_known_from_few() -> None:
    told = tell(in_some(1.0), 1, 2_000, MS)
    assert told.estimate == pytest.approx(2_000)
    assert told.high - told.low < 0.1 * told.true


@pytest.mark.parametrize("seed", range(8))
def test_what_is_made_in_the_first_step_is_not_told_of_steps_that_nothing_stands_for(seed: int) -> None:
    """An optimiser makes its state in it. Counting pauses at length, so that hundreds of steps are told by all the
    others that were counted."""
    with running(random.Random(seed).random) as run:
        train = run.enter(Phase(1))
        for number in range(435):
            for _ in range(87 * (number == 0)):
                read()
            for _ in range(188):
                wait()
                run.now += WARNING * run.counting
            run.step(8 * MS)
            if number == 10:
                run.counter._account.cost_ns += 20 * MS
        found = run.lines()
        assert run.counter.counted_steps(train) < 60
    made = found[1, read.__code__.co_firstlineno + 1]
    (often,) = (each for each in found.values() if each is not made)
    assert (made.count, made.estimate) == (87, 87)
    assert often.estimate == pytest.approx(435 * 188, rel=0.02)


@pytest.mark.parametrize(("last_ns", "known"), [(50 * MS, False), (33 * MS, True)])
def test_the_first_step_stands_for_the_others_where_none_of_them_was_counted(last_ns: int, known: bool) -> None:
    """Four batches of a test: counting stopped in the second one, and the last one is over by its time."""
    evaluate = Phase(1, "evaluate", steps=4)
    state = PhaseTally(evaluate, Draw(None))
    state.first, state.since, state.counted_steps = 0, 4, 2
    state.time_ns, state.block_first, state.block_ns = 80 * MS, 2, last_ns
    sampled = state.sampled(counting=False)
    assert (sampled.first == 0) is known
    place = Place("", 1, None, 0)
    place.now = 1
    told = place.waits(1, 4, sampled)
    assert told is not None and told.estimate is not None
    assert (told.estimate == 1) is known


@pytest.mark.parametrize(("together", "known"), [(1, True), (2, False)])
def test_a_second_step_that_was_told_with_the_first_one_is_no_other(together: int, known: bool) -> None:
    """The phase was found in the midst of it, so that all waits of both count as the first one's."""
    evaluate = Phase(1, "evaluate")
    state = PhaseTally(evaluate, Draw(None))
    place = state.warned[1] = Place("", 1, None, 0)
    place.now = 300
    state.heard_ns = 1
    for steps in (together, 2 - together, 38):
        evaluate.steps += steps
        state.end_steps(steps * (evaluate.steps < 40), steps * (evaluate.steps == 40))
    sampled = state.sampled(counting=False)
    assert (sampled.first == 0) is known
    told = place.waits(1, 40, sampled)
    assert told is not None and told.estimate is not None
    assert (told.estimate == 300) is known


def test_what_waits_in_half_of_the_steps_is_not_known_as_well() -> None:
    told = tell(in_some(0.5), 1, 2_000, MS)
    assert told.high - told.low > 0.2 * told.true


def weights_after(gaps: list[int], usual: float) -> list[float]:
    """Those of single steps that are counted after so many that are left out."""
    weights, found = Weights(), []
    for gap in gaps:
        weights.weigh(0, gap)
        weights.begin_weight(1, usual)
        found.append(weights.weight)
        weights.weigh(1, 0)
    return found


def test_a_step_stands_for_the_mean_of_the_gaps_rather_than_for_its_own() -> None:
    draw = random.Random(1)
    gaps = [int(draw.expovariate(1 / 20)) for _ in range(4_000)]
    found = weights_after(gaps, 20.0)
    assert sum(found) == pytest.approx(sum(gaps) + len(gaps), rel=0.02)
    assert statistics.stdev(found) < 0.5 * statistics.stdev(gaps)


def test_steps_that_are_told_together_with_the_drawn_one_stand_for_no_more_than_there_were() -> None:
    """A step was to be counted, and two are told at once: both have its weight, and later ones as much less."""
    weights = Weights()
    weights.weigh(0, 60)
    weights.begin_weight(1, 10.0)
    weight = weights.weight
    assert weight > 20
    weights.weigh(2, 0)
    weights.weigh(0, 20)
    weights.begin_weight(1, 10.0)
    told = weights.told(62 + 20, 0, 0)
    assert told.share * (2 + told.beside * 2 * (weight - 1)) == pytest.approx(62 + 20)


def test_gaps_longer_than_those_that_were_to_be_drawn_are_made_up_for() -> None:
    """Drawn steps wait until they can be afforded."""
    found = weights_after([60] * 300, 20.0)
    assert sum(found[-100:]) == pytest.approx(61 * 100, rel=0.05)


def test_what_waits_in_the_first_steps_only_is_not_scaled_up() -> None:
    told = [tell(in_the_first(10), seed, 2_000, MS) for seed in range(5)]
    assert all(each.estimate == pytest.approx(10) for each in told)


def test_what_was_counted_of_other_steps_is_told_of_all_of_them() -> None:
    """A policy acts two thousand times before its training begins, whose optimizer tells the steps from then on."""
    with running(random.Random(1).random) as run:
        train = run.enter(Phase(1))
        make_dense_steps(run)
        assert run.counter.counted_steps(train) < 1_000
        train.steps = 0
        run.counter.begin_again(train)
        [told] = run.counter.waits()
        assert told.before == pytest.approx(16_000, rel=0.1)
        assert told.count == 0


def test_what_began_with_the_last_of_other_steps_is_told_of_none_before() -> None:
    """It is the training, whose second step tells that those before were none."""
    state = PhaseTally(phase := Phase(1), Draw())
    for number, place in ((0, Place("", 0, None, 0)), (1, Place("", 1, None, 998))):
        state.warned[number] = place
    state.sampling.one_in = 100.0
    for step in range(0, 1_000, 100):
        phase.steps = step + 99
        state.end_steps(0, 99)
        state.choose_weight()
        for place in state.places:
            if place.first_step <= phase.steps:
                place.begin_step(phase.steps, state.weight)
        phase.steps += 1
        state.end_steps(1, 0)
    state.begin_again()
    acted, trained = state.places
    assert acted.before == pytest.approx(1_000, rel=0.1)
    assert trained.before == 1
