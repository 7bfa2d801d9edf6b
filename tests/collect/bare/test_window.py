"""How many steps the bare window takes, and how many pass before a window."""

from __future__ import annotations

from collections.abc import Callable, Generator
from types import SimpleNamespace
from typing import Any

import pytest

from syncscope.collect.bare import window
from syncscope.collect.bare.moments import HostMoments
from syncscope.collect.bare.steps import Batch
from syncscope.collect.bare.window import MOST_STEPS, BareWindow, settle
from syncscope.schema.recording import Bare, RecordedLoader

MS = 1_000_000


class Clock:
    """Time passes only where a step does."""

    def __init__(self) -> None:
        self.now = 0

    def perf_counter_ns(self) -> int:
        return self.now

    time_ns = perf_counter_ns

    def monotonic(self) -> float:
        return self.now / 1e9


class Host:
    """Says that each step took a batch of a loader with ``ready`` ones."""

    loader: RecordedLoader | None = None

    def __init__(self, ready: list[int] | None = None) -> None:
        self.ready = iter(ready or [])
        self.log: list[str] = []

    def open(self, *, stamps: bool = True) -> None:
        self.log.append("open")

    def close(self) -> None:
        self.log.append("close")

    def afford(self, *given: object) -> None: ...

    def take(self) -> tuple[tuple[()], tuple[Batch, ...]]:
        ready = next(self.ready, None)
        if ready is None:
            return (), ()
        self.loader = RecordedLoader(workers=2, prefetch=2)
        return (), (Batch(ready, 0, 0),)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    made = Clock()
    monkeypatch.setattr(window, "time", made)
    return made


def run(stage: Generator[None, None, Any], clock: Clock, length: Callable[[int], float], most: int = 1000) -> Any:
    """What ``stage`` returns, after steps of ``length(number)`` ms; with how many."""
    next_step = 0
    try:
        next(stage)
        while next_step < most:
            clock.now += int(length(next_step) * MS)
            next_step += 1
            next(stage)
    except StopIteration as ended:
        return ended.value, next_step
    raise AssertionError("it never ended")


def bare_window(clock: Clock, host: Any = None, intruders: dict[int, str] | None = None) -> BareWindow:
    numbers = iter(range(10_000))

    def intruder() -> str | None:
        return (intruders or {}).get(next(numbers))

    return BareWindow(lambda: None, host or Host(), intruder)  # type: ignore[arg-type]


def test_as_many_steps_as_asked_for_are_timed(clock: Clock) -> None:
    bare, passed = run(bare_window(clock).time(4), clock, lambda number: 10)
    assert (len(bare.steps_ns), passed) == (4, 4)


def test_steps_go_on_until_their_median_is_known(clock: Clock) -> None:
    steady, _ = run(bare_window(clock).time(10, 3.0), clock, lambda number: 10 + 0.01 * (number % 7))
    noisy, _ = run(bare_window(clock).time(10, 30.0), clock, lambda number: 10 + (number * 7 % 10) / 5)
    assert len(steady.steps_ns) == 10
    assert 50 < len(noisy.steps_ns) <= MOST_STEPS


def test_steps_of_seconds_end_with_the_time_that_may_be_spent(clock: Clock) -> None:
    one = bare_window(clock)
    _, passed = run(one.time(10, 3.0), clock, lambda number: 3000 + 300 * (number % 3))
    assert passed == one.clean == 2


def test_an_epochs_end_is_named_and_does_not_count(clock: Clock) -> None:
    one = bare_window(clock, intruders={2: "epoch end"})
    bare, passed = run(one.time(5), clock, lambda number: 500 if number == 2 else 10)
    assert passed == 6 and len(bare.steps_ns) == 5
    assert [(one.reason, one.length_ns) for one in bare.set_aside] == [("epoch end", 500 * MS)]


def test_the_host_is_left_alone_when_the_window_is_closed_early(clock: Clock) -> None:
    host = Host()
    stage = bare_window(clock, host).time(5)
    next(stage)
    stage.close()
    assert host.log == ["open", "close"]


def test_a_program_without_a_loader_is_calm_at_once(clock: Clock) -> None:
    _, passed = run(bare_window(clock).calm(steps=20, seconds=1.0), clock, lambda number: 10)
    assert passed == 0


def test_steps_pass_until_the_loader_has_nothing_left_from_a_pause(clock: Clock) -> None:
    host = Host([9, 4, 3, 2, 1, 0, 0, 0])
    host.loader = RecordedLoader(workers=2, prefetch=2)
    _, passed = run(bare_window(clock, host).calm(steps=20, seconds=9.0), clock, lambda number: 10)
    assert passed == 7
    unknown = Host([4, 3, 2, 1, 0, 0, 0])  # until it gives a batch
    _, passed = run(bare_window(clock, unknown).calm(steps=20, seconds=9.0, least=2), clock, lambda number: 10)
    assert passed == 6
    slow = Host(list(range(1000, 0, -1)))
    slow.loader = host.loader
    _, passed = run(bare_window(clock, slow).calm(steps=20, seconds=9.0), clock, lambda number: 10)
    assert passed == 20
    _, passed = run(bare_window(clock, slow).calm(steps=20, seconds=0.1), clock, lambda number: 30)
    assert passed == 4


def watched(clock: Clock, *, limited: bool) -> BareWindow:
    """Beside a GPU whose sensors are sampled."""
    one = bare_window(clock)
    one._clocks = SimpleNamespace(sampling=True, limited=limited)  # type: ignore[assignment]
    return one


@pytest.mark.parametrize(("limited", "passed"), [(False, 5), (True, 3 + 5)])
def test_at_its_power_limit_the_gpu_gets_time_for_its_clock(clock: Clock, limited: bool, passed: int) -> None:
    one = watched(clock, limited=limited)
    bare, steps = run(one.before(5, settle=99), clock, lambda number: 100)
    assert (len(bare.steps_ns), steps) == (5, passed)
    assert run(settle(bare, steps=99, seconds=3.0, least_s=one.clock_s), clock, lambda number: 100) == (
        None, 3 if limited else 1,
    )  # fmt: skip


def test_after_the_windows_the_gpu_is_watched_for_a_second(clock: Clock) -> None:
    one = watched(clock, limited=False)
    bare, steps = run(one.after(10, seconds=3.0, settle=100), clock, lambda number: 10)
    assert (len(bare.steps_ns), steps) == (10, 30 + 100)
    assert one.span_ns == (300 * MS, 1300 * MS)


def test_too_few_steps_after_the_windows_are_none(clock: Clock) -> None:
    assert run(bare_window(clock).after(10, seconds=3.0, settle=0), clock, lambda number: 2000)[0] is None


def test_a_clock_gets_the_time_that_it_needs(clock: Clock) -> None:
    _, passed = run(bare_window(clock).calm(steps=99, seconds=1.0, least_s=0.3), clock, lambda number: 100)
    assert passed == 3


BARE = Bare(steps_ns=tuple(int(length * MS) for length in (10, 10.2, 10.5, 11, 11.7)))


def test_steps_pass_until_one_is_as_long_as_the_bare_ones(clock: Clock) -> None:
    lengths = [3.6, 3.6, 7.5, 10.4, 10.4]
    short, passed = run(settle(BARE, steps=100, seconds=3.0), clock, lambda number: lengths[number])
    assert (short, passed) == (None, 4)


def test_steps_that_stay_too_short_end_with_their_number_or_time_and_are_told(clock: Clock) -> None:
    assert run(settle(BARE, steps=6, seconds=3.0), clock, lambda number: 3.6) == (int(3.6 * MS), 6)
    assert run(settle(BARE, steps=99, seconds=0.02), clock, lambda number: 5) == (5 * MS, 5)
    assert run(settle(BARE, steps=2, seconds=3.0), clock, lambda number: 9.9)[0] is None  # hardly shorter


@pytest.mark.parametrize(("passed", "steps"), [(None, 25), (12, 12), (99, 25)])
def test_the_clock_gets_no_more_steps_than_the_program_had_before(clock: Clock, passed: int | None, steps: int) -> None:
    """A program of sixteen steps of a millisecond has no 0.25 s left."""
    lengths = run(settle(BARE, steps=100, seconds=3.0, least_s=0.25, passed=passed), clock, lambda number: 10.4)
    assert lengths == (None, steps)


def test_no_step_passes_where_none_may(clock: Clock) -> None:
    assert run(settle(BARE, steps=0, seconds=3.0), clock, lambda number: 1) == (None, 0)


def test_a_host_that_follows_nothing_is_a_host() -> None:
    host = HostMoments(SimpleNamespace(), SimpleNamespace(), None)  # type: ignore[arg-type]
    host.open(stamps=False)
    assert host.take() == ((), ())
    host.close()
