"""Checkpoints and other visits to a phase without steps, most of which are too dear to be counted whole."""

from __future__ import annotations

import random
import statistics
from collections import defaultdict
from collections.abc import Callable
from dataclasses import replace

import pytest

from syncscope.collect.count.visits import Visits, WaitsInVisits
from syncscope.schema.counting import CountedWait
from syncscope.schema.recording import SiteEvent
from tests.collect.count.program import MS, PRICES, Phase, Run, running, wait

PRICE = 40_000
SEEDS = 12


def saves() -> None:
    wait()


def looks_first() -> None:
    wait()


def writes_last() -> None:
    wait()


class Program:
    """Trains for an epoch of 0.8 s, and saves a model, many times. ``waits`` is what it does, by function."""

    def __init__(self, run: Run, seed: int) -> None:
        self.run = run
        self.draw = random.Random(seed)
        self.train, self.saving = Phase(1), Phase(2, "checkpoint")
        self.waits: defaultdict[str, int] = defaultdict(int)

    def epoch(self) -> None:
        self.run.enter(self.train)
        for _ in range(20):
            for _ in range(7):
                wait()
                self.run.now += PRICE * self.run.counting
            self.run.step(40 * MS)

    def do(self, what: Callable[[], None], times: int, length_ns: float) -> None:
        for _ in range(times):
            what()
            self.run.now += int(length_ns / times) + PRICE * self.run.counting
        self.waits[what.__name__] += times

    def save(self, tensors: int, length_ns: float, *, first: int = 0, last: int = 0) -> None:
        """What is saved is found first, which takes a tenth of the time. Of the tensors the small ones come first."""
        length_ns *= self.draw.lognormvariate(0, 0.1)
        self.run.enter(self.saving)
        self.do(looks_first, first, 0)
        self.run.now += int(length_ns / 10)
        self.do(saves, tensors // 2, length_ns / 10)
        self.do(saves, tensors - tensors // 2, length_ns * 8 / 10)
        self.do(writes_last, last, 0)

    def told(self) -> dict[str, CountedWait]:
        """By the function of the line."""
        self.run.counter.close()
        frames, stacks = self.run.stacks.resolve()
        found = [each for each in self.run.counter.waits() if each.phase == 2]
        return {frames[stacks[each.stack][-2]].function: each for each in found}


def told_share(seed: int, save: Callable[[Program, int], None], epochs: int = 30) -> dict[str, float]:
    """What is told of each line, as a share of the waits that it had. Less than half of all were counted."""
    with running(random.Random(seed).random, replace(PRICES, warning=float(PRICE)), before_ns=5_000 * MS) as run:
        program = Program(run, seed)
        for number in range(epochs):
            program.epoch()
            save(program, number)
        told = program.told()
    assert sum(each.count for each in told.values()) < sum(program.waits.values()) / 2
    return {name: (told[name].estimate or 0.0) / true if name in told else 0.0 for name, true in program.waits.items()}


@pytest.mark.parametrize("seed", range(4))
def test_checkpoints_of_one_model_are_alike_however_much_of_each_was_counted(seed: int) -> None:
    told = told_share(seed, lambda program, number: program.save(500, 120 * MS))
    assert told["saves"] == pytest.approx(1)


@pytest.mark.parametrize("seed", range(4))
def test_checkpoints_of_two_models_are_told_apart_by_how_long_they_take(seed: int) -> None:
    """Every third one is a small one, and counted whole."""
    told = told_share(seed, lambda p, number: p.save(*((20, 5 * MS) if number % 3 == 2 else (500, 120 * MS))))
    assert told["saves"] == pytest.approx(1, rel=0.01)


def test_what_waits_last_in_each_visit_is_told_as_often_as_it_was_seen_in_whole_ones() -> None:
    told = [told_share(seed, lambda program, _: program.save(500, 120 * MS, last=2)) for seed in range(4)]
    assert [each["writes_last"] for each in told] == [pytest.approx(1)] * 4


def test_what_waits_first_is_told_as_often_as_it_was_seen() -> None:
    """In half of the visits, and hidden in none of them."""
    told = [
        told_share(seed, lambda program, _: program.save(500, 120 * MS, first=int(program.draw.random() < 0.5)))
        for seed in range(SEEDS)
    ]
    assert statistics.fmean(each["looks_first"] for each in told) == pytest.approx(1, abs=0.02)


def test_visits_that_differ_are_right_on_average() -> None:
    """As dear ones are seldom whole, those that are whole are not like all."""
    told = [
        told_share(seed, lambda program, _: program.save(program.draw.randrange(250, 750), 120 * MS))
        for seed in range(SEEDS)
    ]
    assert statistics.fmean(each["saves"] for each in told) == pytest.approx(1, abs=0.05)


def test_where_no_visit_was_whole_the_time_tells_and_says_how_little_is_known() -> None:
    for seed in range(4):
        with running(random.Random(seed).random, replace(PRICES, warning=float(PRICE))) as run:
            program = Program(run, seed)
            for _ in range(12):
                program.epoch()
                program.save(4_000, 600 * MS)
            saved = program.told()["saves"]
            visited = run.counter.tally.of(program.saving).sampled(False).visited
            assert visited is not None and visited.cut and not visited.whole
        assert saved.estimate is not None
        assert 12 * 4_000 / 3 < saved.estimate < 12 * 4_000 * 3
        assert abs(saved.estimate - 12 * 4_000) <= 2 * saved.variance**0.5


def test_what_a_window_saw_of_a_visit_is_no_part_of_the_next_one() -> None:
    """A window is open in the whole of the second of three checkpoints."""
    with running(lambda: 0.5) as run:
        train, saving = Phase(1), Phase(2, "checkpoint")
        for number in range(3):
            run.enter(train)
            run.step(100 * MS)
            run.enter(saving)
            if number == 1:
                stack = run.counter.waits()[0].stack
                run.counter.suspend()
                run.now += 5 * MS
                run.enter(train)
                events = [SiteEvent(kind="warning", tid=1, start_ns=1, end_ns=1, stack=stack)] * 5
                run.counter.tally.add_event(run.counter.tally.of(saving), events[0], 0, None)
                for event in events[1:]:
                    run.counter.tally.add_event(run.counter.tally.of(saving), event, 0, None)
                run.counter.resume()
                continue
            for _ in range(5):
                saves()
                run.now += MS
        run.enter(train)
        (place,) = run.counter.tally.of(saving).places
        assert (place.count, place.visits and place.visits.counted) == (15, 10)
        (told,) = (each for each in run.counter.waits() if each.phase == 2)
        assert (told.count, told.estimate, told.variance) == (15, 15.0, 0.0)


def told_of(visits: list[tuple[int, int, int]]) -> tuple[float, float]:
    """What is told of visits that lasted so long, were counted for so long, and waited so often meanwhile."""
    phase, place = Visits(), WaitsInVisits()
    time_ns = counted_ns = 0
    for length_ns, heard_ns, waits in visits:
        time_ns, counted_ns = time_ns + length_ns, counted_ns + heard_ns
        visited = phase.end(time_ns, counted_ns, 0.0)
        if waits:
            place.end(visited, waits, waits * visited.scale)
    return place.told(phase.so_far(time_ns, counted_ns, 0.0))


def test_a_visit_that_was_missed_is_told_by_those_that_lasted_about_as_long() -> None:
    short, long = (10 * MS, 10 * MS, 2), (1_000 * MS, 1_000 * MS, 50)
    assert told_of([short, long, (11 * MS, 0, 0)])[0] == pytest.approx(54)
    assert told_of([short, long, (900 * MS, 0, 0)])[0] == pytest.approx(102)
    assert told_of([short, long, (100_000 * MS, 0, 0)])[0] == pytest.approx(52 + 26)  # by all that are shorter
    assert told_of([short, long, (MS // 10, 0, 0)])[0] == 52  # too short for anything that was seen


def test_a_visit_that_was_counted_in_part_waited_no_less_than_was_seen() -> None:
    assert told_of([(10 * MS, 10 * MS, 5), (10 * MS, 9 * MS, 8)])[0] >= 5 + 8


def test_the_more_visits_tell_the_better_the_others_are_known() -> None:
    whole, cut = (10 * MS, 10 * MS, 40), (10 * MS, 5 * MS, 10)
    few, many = told_of([whole, cut]), told_of([whole] * 9 + [cut])
    assert few[0] == 80 and many[0] == 400
    assert 0 < many[1] < few[1]
