"""Wrapped calls in which there is nothing to count: what they are taken to cost, and that they cost no more."""

from __future__ import annotations

import pytest

from syncscope.collect.count import prices, wrappers
from syncscope.collect.count.account import CAP, COLD, COLDEST, DISTURBED, GRACE_NS, PROBED, Account, Prices
from syncscope.collect.count.prices import TRACKED_NS, passing_call
from tests.collect.count.program import MS, PRICES, running

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


def test_one_in_so_many_calls_that_pass_is_timed_in_the_program() -> None:
    with running(prices=None) as run:
        timed: list[int] = []
        assert run.counter.tally.passing_call is not None
        run.counter.tally.passing_call = lambda: timed.append(1)
        host = run.torch.Tensor()
        for _ in range(10 * PROBED):
            host.to("cpu")
        assert 9 <= len(timed) <= 11


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
