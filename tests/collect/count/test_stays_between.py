"""Evaluations between epochs, of which a part is counted: each step is told once, whoever tells that it was one."""

from __future__ import annotations

import random
import statistics
from dataclasses import replace
from functools import partial
from types import SimpleNamespace

import pytest

from syncscope.collect.count import window_events
from syncscope.schema.recording import SiteEvent
from tests.collect.count.program import MS, PRICES, Phase, Run, running, wait

PRICE = 40_000
STEPS = 10


class Program:
    """Trains for an epoch, and evaluates two models. ``late``: the first step of an evaluation is told with the second
    one, as its model was not known to make steps."""

    def __init__(self, run: Run, late: bool = False) -> None:
        self.run = run
        self.late = late
        self.train, self.evaluate, self.between = Phase(1), Phase(2, "evaluate"), Phase(3, "epoch end")
        self.window: list[SiteEvent] | None = None

    def work(self, waits: int, length_ns: int) -> None:
        for _ in range(waits):
            if self.window is None:
                wait()
            else:
                (stack,) = (each.stack for each in self.run.counter.waits() if each.phase == 2)
                now = self.run.now
                self.window.append(SiteEvent(kind="warning", tid=1, start_ns=now, end_ns=now + 1, stack=stack))
            self.run.now += length_ns // waits + PRICE * self.run.counting

    def epoch(self, window_at: int | None = None) -> None:
        """A window is open from that step of the second evaluation on."""
        self.run.enter(self.train)
        for _ in range(15):
            self.work(7, 80 * MS)
            self.run.step()
        for number in range(2):
            self.run.enter(self.between)
            self.run.now += 30 * MS
            self.run.enter(self.evaluate)
            self.run.now += 3_000
            self.evaluate_once(window_at if number else None)
        self.run.now += 5 * MS

    def evaluate_once(self, window_at: int | None) -> None:
        late, begun = self.late and self.evaluate.times > 1, []
        for step in range(STEPS):
            self.evaluate.steps += late and step == 1
            if not late or step:
                self.run.step()
            if step == window_at:
                self.run.counter.suspend()
                self.window = []
            if self.window is not None:
                begun.append(self.run.now)
            self.work(6, 12 * MS)
        self.run.end_loop()
        self.run.now += 5 * MS
        self.run.enter(self.between)
        if self.window is not None:
            self.run.counter.add_window(self.evaluate, self.window, begun)
            self.run.counter.resume()
            self.window = None

    def told(self) -> float:
        """What is told of the line, as a share of the waits that it had. Much of it was not counted."""
        self.run.counter.close()
        found = [each for each in self.run.counter.waits() if each.phase == 2]
        assert sum(each.count for each in found) < 0.7 * 6 * self.evaluate.steps
        return sum(each.estimate or 0.0 for each in found) / (6 * self.evaluate.steps)


@pytest.mark.parametrize("late", [False, True])
def test_each_step_of_two_evaluations_between_epochs_is_told_once(late: bool) -> None:
    shares = []
    for seed in range(8):
        with running(random.Random(seed).random, replace(PRICES, warning=float(PRICE))) as run:
            program = Program(run, late)
            for _ in range(20):
                program.epoch()
            assert program.evaluate.steps == 2 * 20 * STEPS
            shares.append(program.told())
    assert statistics.fmean(shares) == pytest.approx(1, abs=0.005)
    assert max(abs(share - 1) for share in shares) < 0.01


@pytest.mark.parametrize("late", [False, True])
def test_the_last_step_of_an_evaluation_that_a_window_recorded_is_told_once(
    late: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The window ends where the program leaves the evaluation, in that step."""
    shares = []
    for seed in range(8):
        draw = random.Random(seed)
        with running(draw.random, replace(PRICES, warning=float(PRICE))) as run:
            program = Program(run, late)
            clock = SimpleNamespace(time_ns=partial(getattr, run, "now"))
            monkeypatch.setattr(window_events, "time", clock)
            for number in range(20):
                program.epoch(draw.randrange(2, STEPS) if number >= 8 else None)
            assert program.evaluate.steps == 2 * 20 * STEPS
            shares.append(program.told())
    assert statistics.fmean(shares) == pytest.approx(1, abs=0.005)
    assert max(abs(share - 1) for share in shares) < 0.01


def test_the_end_of_a_loop_is_heard_behind_a_window_in_it() -> None:
    """Nothing is counted then, and no step tells the end."""
    with running(lambda: 0.5) as run:
        evaluate = Phase(1, "evaluate")
        for _ in range(2):
            run.enter(evaluate)
            for _ in range(STEPS):
                run.step(20 * MS)
        run.counter._account.cost_ns += 1e15
        run.counter._account.rare_ns = 1e12
        run.counter.tally.of(evaluate).cost_ns = 1e15
        run.step()
        run.counter.suspend()
        run.tracker.stop_watching()  # as a window does
        run.step(20 * MS)
        run.counter.add_window(evaluate, [], [0, 1])
        run.counter.resume()
        assert not run.counting and run.tracker.over is not None
