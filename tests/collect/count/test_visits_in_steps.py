"""What is prepared, in the midst of a drawn step, for a phase that seldom begins there: it waits in no other step."""

from __future__ import annotations

import random
from collections.abc import Container
from dataclasses import replace

import pytest

from syncscope.schema.counting import CountedWait, PhaseKind
from tests.collect.count.program import MS, PRICES, Phase, Run, running, wait

STEPS = 800


def learns() -> None:
    wait()


def prepares() -> None:
    wait()


def samples() -> None:
    wait()


def some_steps(seed: int, many: int) -> set[int]:
    """So many steps of a training, which nobody can foresee."""
    return {8 * each + 5 for each in random.Random(100 + seed).sample(range(STEPS // 8), many)}


def of_training(run: Run) -> dict[str, CountedWait]:
    """What was counted in phase 1, by the function that waits."""
    return {name: wait for (phase, name), wait in run.by_function().items() if phase == 1}


def trained(
    seed: int, kind: PhaseKind, visited: Container[int], extra_every: int = 0
) -> tuple[dict[str, CountedWait], float]:
    """What is told of each line of a training with a visit in some steps, where all was spent that is kept for what is
    rare, and one step in how many was counted. ``prepares`` also waits in every ``extra_every``-th step."""
    prices = replace(PRICES, warning=60_000.0)
    with running(random.Random(seed).random, prices) as run:
        train, visitor = Phase(1), Phase(2, kind)
        run.enter(train)
        run.counter._account.rare_ns = 1e15  # all was spent that is kept for what is rare
        for step in range(STEPS):
            for _ in range(4):
                learns()
                run.now += 60_000 * run.counting
            if extra_every and step % extra_every == 3:
                prepares()
            if step in visited:
                prepares()
                run.enter(visitor)
                samples()
                run.step(20 * MS)
                run.enter(train)
            run.step(10 * MS)
        return of_training(run), run.counter.one_in(train)


def estimate(wait: CountedWait | None) -> float:
    if wait is None:
        return 0.0
    return wait.estimate if wait.estimate is not None else float(wait.count)


@pytest.mark.parametrize("kind", ["evaluate", "generate", "checkpoint"])
def test_it_is_told_by_how_many_visits_there_were(kind: PhaseKind) -> None:
    visits, told = 20, []
    for seed in range(16):
        lines, one_in = trained(seed, kind, some_steps(seed, visits))
        assert one_in > 2
        assert estimate(lines["learns"]) == pytest.approx(4 * STEPS, rel=0.05)
        prepared = lines.get("prepares")
        told.append(estimate(prepared))
        if prepared is not None and prepared.variance is not None:
            assert abs(told[-1] - visits) <= 2 * prepared.variance**0.5 + 0.5
    known = [each for each in told if each > 1]  # one may be in the first steps alone, which are all counted
    assert len(known) >= 12
    assert all(each == pytest.approx(visits, rel=0.1) for each in known)


def reads() -> None:
    wait()


@pytest.mark.parametrize("seed", range(6))
def test_what_prepares_each_of_several_visits_in_one_step_is_told_as_often_as_it_was(seed: int) -> None:
    """After each forty steps the network is evaluated, after each sixty it generates a sentence for each of seven
    prompts. All that waits before these begin, waits in a step of the training, of which one in three is counted."""
    prices = replace(PRICES, warning=50_000.0)
    with running(random.Random(seed).random, prices, before_ns=1_000 * MS) as run:
        train, evaluate, generate = Phase(1), Phase(2, "evaluate"), Phase(3, "generate")
        run.enter(train)
        for step in range(241):
            if step and step % 40 == 0:
                learns()  # as in each step, and one time more
                run.now += MS
                prepares()
                run.enter(evaluate)
                for _ in range(10):
                    run.now += 7 * MS
                    run.step()
                run.enter(train)
            for _ in range(7 * (step > 0 and step % 60 == 0)):
                run.now += MS
                reads()
                run.enter(generate)
                run.now += 2_000
                run.step()
                for _ in range(20):
                    samples()
                    run.now += 4 * MS + 50_000 * run.counting
                run.enter(train)
            for _ in range(13):
                learns()
                run.now += 3 * MS + 50_000 * run.counting
            run.step()
        told = run.by_function()
    assert run.counter.one_in(train) > 2
    for place, true in (((1, "prepares"), 6), ((1, "reads"), 28), ((1, "learns"), 13 * 241 + 6), ((3, "samples"), 560)):
        error = abs(estimate(told[place]) - true)
        assert error <= 2 * told[place].variance ** 0.5 + 0.05 * true
        assert place[0] == 3 or error <= 0.1 * true


def test_a_line_that_also_waits_in_other_steps_is_told_by_those_and_by_the_visits() -> None:
    told = [estimate(trained(seed, "evaluate", some_steps(seed, 20), 4)[0]["prepares"]) for seed in range(16)]
    assert sum(told) / len(told) == pytest.approx(STEPS / 4 + 20, rel=0.15)


def test_steps_with_a_visit_in_each_are_like_each_other() -> None:
    lines, one_in = trained(1, "evaluate", range(STEPS))
    assert one_in > 2
    assert estimate(lines["prepares"]) == pytest.approx(STEPS, rel=0.05)


def keeps() -> None:
    wait()


def updated(seed: int) -> dict[str, CountedWait]:
    """What is told of a training of which each sixteenth step follows a rollout of 128 steps, and keeps it first. Steps
    are dear, so that only the rests of some can be afforded."""
    prices = replace(PRICES, warning=20_000.0)
    with running(random.Random(seed).random, prices, before_ns=1_000 * MS) as run:
        train, rollout = Phase(1), Phase(2, "rollout")
        run.enter(train)
        for step in range(480):
            if step and step % 16 == 0:
                run.now += MS
                prepares()
                run.enter(rollout)
                for _ in range(128):
                    run.step(2 * MS)
                    samples()
                    run.now += 20_000 * run.counting
                run.enter(train)
                keeps()
            for _ in range(40):
                learns()
                run.now += 20_000 * run.counting
            run.step(6 * MS)
        told = of_training(run)
        assert run.counter.one_in(train) > 4
        return told


def test_what_is_done_with_the_results_of_a_phase_is_told_as_often_as_that_was() -> None:
    told = [updated(seed) for seed in range(12)]
    for place, true in (("keeps", 29), ("prepares", 29), ("learns", 40 * 480)):
        each = [estimate(lines[place]) if place in lines else 0.0 for lines in told]
        assert sum(each) / len(each) == pytest.approx(true, rel=0.12), (place, each)
        assert sum(abs(one - true) <= 0.25 * true for one in each) >= 10, (place, each)


def ends() -> None:
    wait()


def epochs(seed: int) -> dict[str, CountedWait]:
    """What is told of forty epochs of thirty steps, of which one in several is counted. What comes behind the last one
    of an epoch waits before anything tells that it is over."""
    with running(random.Random(seed).random, replace(PRICES, warning=20_000.0)) as run:
        train, end = Phase(1), Phase(2, "epoch end")
        for _ in range(40):
            run.enter(train)
            for _ in range(30):
                for _ in range(12):
                    learns()
                    run.now += 20_000 * run.counting
                run.step(6 * MS)
            run.now += MS
            ends()
            run.enter(end)
            run.now += 5 * MS
        told = of_training(run)
        assert run.counter.one_in(train) > 2
        return told


def test_what_comes_before_the_end_of_an_epoch_is_told_as_often_as_epochs_ended() -> None:
    told = [epochs(seed) for seed in range(12)]
    for place, true in (("ends", 40), ("learns", 12 * 1200)):
        each = [estimate(lines[place]) if place in lines else 0.0 for lines in told]
        assert all(one == pytest.approx(true, rel=0.1) for one in each), (place, each)


def acts() -> None:
    wait()


def acted(seed: int) -> tuple[CountedWait | None, int]:
    """What is told of the actions of a policy, twenty in each sixteenth step of its training, which is saved after
    every fifth time; and how many they were. Steps are dear."""
    with running(random.Random(seed).random, replace(PRICES, warning=40_000.0), before_ns=1_000 * MS) as run:
        train, checkpoint = Phase(1), Phase(2, "checkpoint")
        run.enter(train)
        for step in range(800):
            if step % 16 == 8:
                for _ in range(20):
                    acts()
                    run.now += MS // 10 + 40_000 * run.counting
            if step % 80 == 8:
                run.enter(checkpoint)
                run.now += 5 * MS
                run.enter(train)
            for _ in range(30):
                learns()
                run.now += 40_000 * run.counting
            run.step(10 * MS)
        assert run.counter.one_in(train) > 20
        return of_training(run).get("acts"), 50 * 20


def test_what_is_known_beside_a_phase_alone_may_be_in_other_steps_too_where_few_of_them_were_counted() -> None:
    inside = 0
    for seed in range(16):
        told, true = acted(seed)
        inside += told is not None and abs(estimate(told) - true) <= 2 * (told.variance or 0.0) ** 0.5
    assert inside >= 14
