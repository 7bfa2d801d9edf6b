"""What is told of a phase without steps, of whose visits some were counted whole, some in part and some not at all."""

from __future__ import annotations

import pytest

from syncscope.collect.count import spending
from syncscope.schema.counting import CountedWait
from tests.collect.count.program import MS, Phase, Run, running, wait


@pytest.fixture(autouse=True)
def nothing_is_fresh(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a phase may cost however much was spent before would be more than all that is counted here."""
    monkeypatch.setattr(spending, "FRESH_NS", 0)
    monkeypatch.setattr(spending, "FRESH_SHARE", 0.0)


def reads_loss() -> None:
    wait()


def takes_features() -> None:
    wait()


def train_for(run: Run, train: Phase, steps: int) -> None:
    run.enter(train)
    for _ in range(steps):
        wait()
        run.step(10 * MS)


def spend_all(run: Run) -> None:
    """More was spent than may be, also on what is rare."""
    account = run.counter._account
    account.cost_ns += 1e15
    account.rare_ns = account.advance_ns + 1e12


def give_back(run: Run) -> None:
    run.counter._account.cost_ns -= 1e15
    run.counter._account.rare_ns = 0.0


def between(run: Run) -> tuple[CountedWait, CountedWait]:
    """The line that waits at each end of an epoch, and the one that does after the last."""
    run.counter.close()
    frames, stacks = run.stacks.resolve()
    names = [frames[stack[-2]].function for stack in stacks]
    found = {names[each.stack]: each for each in run.counter.waits() if each.phase == 2}
    return found["reads_loss"], found["takes_features"]


def test_what_was_missed_of_one_visit_tells_nothing_of_the_others() -> None:
    """After the last epoch features are taken, and fitted for long. Counting stops in the midst of it."""
    with running(lambda: 0.5) as run:
        train, ends = Phase(1), Phase(2, "epoch end")
        for epoch in range(10):
            train_for(run, train, 20)
            run.enter(ends)
            reads_loss()
            run.now += 5 * MS
            for number in range(100 * (epoch == 9)):
                if number == 50:
                    spend_all(run)
                    run.counter._over()
                takes_features()
                run.now += 5 * MS
        loss, features = between(run)
    assert (loss.count, loss.estimate, features.count) == (10, 10.0, 50)
    assert features.estimate is not None
    assert features.estimate == pytest.approx(100, rel=0.1)
    assert abs(features.estimate - 100) <= 2 * features.variance**0.5 <= 100


def test_visits_of_which_nothing_was_counted_are_like_the_others_as_far_as_they_last() -> None:
    """Four of ten epochs end while nothing may be spent. What takes half a second was in none of them."""
    with running(lambda: 0.5) as run:
        train, ends = Phase(1), Phase(2, "epoch end")
        for epoch in range(10):
            train_for(run, train, 20)
            if epoch == 2:
                spend_all(run)
            run.enter(ends)
            assert run.counting is not (2 <= epoch < 6)
            reads_loss()
            run.now += 5 * MS
            for _ in range(100 * (epoch == 9)):
                takes_features()
                run.now += 5 * MS
            if epoch == 5:
                give_back(run)
        loss, features = between(run)
    assert loss.estimate is not None and loss.estimate == pytest.approx(10) and loss.count == 6
    assert abs(loss.estimate - 10) <= 2 * loss.variance**0.5 <= 5
    assert features.estimate is not None
    assert features.estimate == pytest.approx(100, abs=5)


def test_a_visit_tells_of_a_line_no_more_than_its_time_does_nor_than_visits_usually_have() -> None:
    """Of each end of an epoch counting misses more than half: its line waits ten times all the same."""
    with running(lambda: 0.5) as run:
        train, ends = Phase(1), Phase(2, "epoch end")
        for epoch in range(10):
            train_for(run, train, 20)
            run.enter(ends)
            for number in range(10):
                if number == 4 and epoch > 4:
                    spend_all(run)
                    run.counter._over()
                reads_loss()
                run.now += MS
                takes_features()
            if epoch > 4:
                give_back(run)
        loss, features = between(run)
    assert loss.count == 50 + 5 * 4
    for each in (loss, features):
        assert each.estimate is not None
        assert each.estimate == pytest.approx(100, rel=0.03)
        assert abs(each.estimate - 100) <= 2 * each.variance**0.5 <= 60


def test_what_waits_once_is_no_rate() -> None:
    """A model is moved before the first phase, data are prepared, and counting that comes to cost too much ends."""
    with running(lambda: 0.5) as run:
        reads_loss()
        for number in range(100):
            if number == 50:
                spend_all(run)
                run.counter._over()
            takes_features()
            run.now += 5 * MS
        run.counter.close()
        moved, prepared = sorted(run.counter.waits(), key=lambda each: each.count)
    assert (moved.count, moved.estimate) == (1, 1.0)
    assert prepared.estimate == pytest.approx(100, rel=0.03)
