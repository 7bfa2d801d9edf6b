"""Wrapped calls in which there is nothing to count: what they are taken to cost, and that they cost no more."""

from __future__ import annotations

import random
import time
from dataclasses import replace
from types import SimpleNamespace

import pytest

from syncscope.collect.count import prices, tally, wrappers
from syncscope.collect.count.account import CAP, COLD, COLDEST, DISTURBED, GRACE_NS, PROBED, Account, Prices
from syncscope.collect.count.prices import TRACKED_NS, passing_call
from tests.collect.count.program import MS, PRICES, Phase, Run, running, wait

MEASURED = Prices(warning=3_000.0, passed=400.0, gate=100.0, seen=1_000.0, probe=500.0)


def test_calls_that_pass_cost_what_one_of_our_own_takes_and_not_what_waits_do() -> None:
    """A loader converts each sample, one after another. Waits are seldom, and so are our code's lines in caches."""
    account = Account(MEASURED)
    assert account.prices.passed == pytest.approx(COLD * 400, rel=0.05)
    for _ in range(200):
        account.warnings += 1
        account.seen_ns += 15_000
        account.settle(MS)
        account.book_probe(600)
    assert account.prices.warning == pytest.approx(15 * 3_000, rel=0.1)
    assert account.prices.passed == pytest.approx(1.2 * 400 * (1 + 1 / PROBED), rel=0.05)
    assert account.prices.gate == pytest.approx(1.2 * 100, rel=0.05)


def test_calls_that_pass_are_as_cold_as_waits_until_one_was_timed() -> None:
    account = Account(MEASURED)
    for _ in range(200):
        account.warnings += 1
        account.seen_ns += 10_000
        account.settle(MS)
    assert account.prices.passed == pytest.approx(10 * 400, rel=0.1)


def test_a_call_that_was_disturbed_tells_little() -> None:
    account = Account(MEASURED)
    account.book_probe(100 * MS)
    assert account.pass_coldness <= COLD + (DISTURBED * COLD - COLD) / 10
    for _ in range(1_000):
        account.book_probe(100 * MS)
    assert account.pass_coldness <= COLDEST


class Time:
    """The clock of the program's own calls, and of ours between them."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = 1
        self.ours_ns = 0
        """What a call of our own takes."""
        self.timed = 0
        monkeypatch.setattr(tally, "time", SimpleNamespace(perf_counter_ns=lambda: self.now, time_ns=time.time_ns))

    def ours(self) -> None:
        self.timed += 1
        self.now += self.ours_ns


def convert(run: Run, clock: Time, bursts: int, together: int, between_ns: int, pause_ns: int) -> None:
    """Bursts of so many calls that pass."""
    host = run.torch.Tensor()
    for _ in range(bursts):
        for _ in range(together):
            clock.now += between_ns
            host.to("cpu")
        clock.now += pause_ns
        run.step(pause_ns)


def priced(monkeypatch: pytest.MonkeyPatch, bursts: int, together: int, between_ns: int) -> tuple[float, int]:
    """What one of such calls is taken to cost, as a part of what it took in a loop, and how many of our own were timed.
    These take six times as long as in a loop."""
    clock = Time(monkeypatch)
    clock.ours_ns = 3_000
    with running(random.Random(1).random, MEASURED) as run:
        run.counter.tally.passing_call = clock.ours
        convert(run, clock, bursts, together, between_ns, 40 * MS)
        return run.counter.prices.passed / MEASURED.passed, clock.timed


def test_one_in_so_many_calls_that_come_one_by_one_is_timed_in_the_program(monkeypatch: pytest.MonkeyPatch) -> None:
    price, timed = priced(monkeypatch, 3_200, 1, 1_000)
    assert 80 <= timed <= 110
    assert price == pytest.approx(6, rel=0.1)


def test_calls_that_come_one_after_another_cost_hardly_more_than_in_a_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    """Clipping the norm of gradients moves a hundred norms to where they are: of all these only the first one is cold.
    One of our own between them is colder than they are."""
    price, timed = priced(monkeypatch, 40, 93, 1_000)
    assert price == pytest.approx(1.25, rel=0.25)
    assert timed < 10


def test_calls_between_which_something_is_computed_cost_more(monkeypatch: pytest.MonkeyPatch) -> None:
    price, timed = priced(monkeypatch, 40, 93, 10_000)
    assert price == pytest.approx(2, rel=0.25)
    assert timed < 10


def test_of_calls_in_bursts_of_a_few_some_are_as_cold_as_others(monkeypatch: pytest.MonkeyPatch) -> None:
    price, timed = priced(monkeypatch, 1_600, 4, 1_000)
    assert price == pytest.approx((6 + 3 * 1.25) / 4, rel=0.5)
    assert 30 < timed < 80


def test_a_step_with_a_burst_of_calls_that_pass_is_counted_each_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """Fifteen waits and ninety such calls in 40 ms: 0.3 % at what they cost, and 1 % if these are taken to be cold."""
    clock = Time(monkeypatch)
    clock.ours_ns = 6_000
    dear = replace(MEASURED, warning=3_000.0, passed=700.0, gate=200.0, probe=1_000.0, seen=0.0)
    with running(random.Random(1).random, dear) as run:
        run.counter.tally.passing_call = clock.ours
        train = run.enter(Phase(1))
        for _ in range(300):
            for _ in range(15):
                wait()
            convert(run, clock, 1, 90, 1_000, 40 * MS)
        assert run.counter.one_in(train) == 1


def test_the_wrapper_of_a_copy_that_waits_is_as_cold_as_its_warning() -> None:
    account = Account(MEASURED)
    for _ in range(200):
        account.warnings += 1
        account.copied += 1
        account.seen_ns += 10_000
        account.settle(MS)
        account.book_close(1_000)
    before = account.cost_ns
    account.copied += 1
    account.settle(MS)
    assert account.cost_ns - before == pytest.approx(2 * 10 * MEASURED.passed, rel=0.1)


def test_the_call_of_our_own_passes_as_one_of_a_usual_tensor_does(monkeypatch: pytest.MonkeyPatch) -> None:
    """Subclasses of tensors take twice as long, and are few."""
    monkeypatch.setattr(wrappers, "unseen", lambda *given: pytest.fail("it was looked at as a subclass is"))
    with running() as run:
        scratch = run.counter._scratch()
        passing_call(scratch)()
        assert scratch._account.passed == 1


def test_what_is_timed_of_a_wait_has_telling_its_phase_in_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """Else the tracker's part of each wait would make all that counting does seem as much dearer."""
    monkeypatch.setattr(prices, "_once", lambda call: 700.0)
    with running(prices=None) as run:
        assert run.counter._account.measured.seen == 700.0 + TRACKED_NS


def test_calls_of_a_compiler_do_not_pass_and_its_warnings_are_heard() -> None:
    """It makes tens of thousands of calls, which would use up what counting may cost for the rest of the run."""
    with running() as run:
        account, host = run.counter._account, run.torch.Tensor()
        run.counter.compiles(False)  # it began before the counter was there
        run.counter.compiles(True)
        run.counter.compiles(True)
        for _ in range(100):
            host.to("cpu")
        assert (account.passed, account.on) == (0, True)
        run.counter.compiles(False)
        host.to("cpu")
        assert account.passed == 0  # one is still under way
        run.counter.compiles(False)
        host.to("cpu")
        assert account.passed == 1


def test_calls_that_pass_end_counting_once_they_cost_too_much() -> None:
    """A loader converts samples before the first phase. No wait looks at what was spent."""
    with running() as run:
        host = run.torch.Tensor()
        for _ in range(200_000):
            host.to("cpu")
            run.now += 20_000
        assert not run.counting
        run.counter._settle()
        assert run.counter._account.cost_ns <= CAP * run.now + GRACE_NS + 2 * PROBED * PRICES.passed
        run.now += 5_000 * MS
        run.counter.tick()
        assert run.counting
