"""Damaged traces end in no traceback, no number that is not finite, and no hang.

The same seeds every time; ``python -m benchmarks.fuzz`` runs as many as one likes.
"""

from __future__ import annotations

import msgspec
import pytest

from benchmarks.fuzz import LONGEST_S, Tally, run_seed, run_seeds


def assert_harmless(tally: Tally) -> None:
    assert tally.crashes == {}
    assert tally.read > tally.traces // 2
    assert tally.slowest_s < LONGEST_S


@pytest.mark.parametrize(("mode", "count"), [("loads", 75), ("whole", 20)])
def test_damaged_traces_do_no_harm(mode: str, count: int) -> None:
    assert_harmless(run_seeds(mode, 0, count))


def test_a_trace_that_lost_a_wait_and_says_so_is_never_passed() -> None:
    tally = run_seeds("witnesses", 0, 40)
    assert (tally.crashes, tally.read) == ({}, 40)


def test_one_that_nobody_noticed_is_a_crash(monkeypatch) -> None:
    monkeypatch.setattr("syncscope.timeline.timeline.find_disagreements", lambda timeline: ())
    crashes = run_seeds("witnesses", 0, 4).crashes
    assert crashes
    assert all(place.startswith("Passed: ") for place in crashes)


@pytest.mark.slow
@pytest.mark.timeout(1200)
def test_many_traces_that_lost_a_wait_are_never_passed() -> None:
    tally = run_seeds("witnesses", 1000, 2000)
    assert (tally.crashes, tally.read) == ({}, 2000)


@pytest.mark.slow
@pytest.mark.timeout(1200)
@pytest.mark.parametrize(("mode", "count"), [("loads", 5000), ("whole", 1000)])
def test_many_damaged_traces_do_no_harm(mode: str, count: int) -> None:
    assert_harmless(run_seeds(mode, 1000, count))


def test_a_crash_is_counted_by_its_place_and_can_be_repeated(monkeypatch, tmp_path) -> None:
    def crash(path, workers):
        raise OverflowError("too large")

    monkeypatch.setattr("benchmarks.fuzz.load", crash)
    tally = run_seeds("loads", 7, 3)
    ((place, seeds),) = tally.crashes.items()
    assert place.startswith("OverflowError: too large at ")
    assert seeds == [7, 8, 9]
    with pytest.raises(OverflowError):
        run_seed("loads", 7, tmp_path)


def test_a_trace_that_takes_too_long_is_a_hang(monkeypatch) -> None:
    def wait(path, workers):
        while True:
            pass

    monkeypatch.setattr("benchmarks.fuzz.LONGEST_S", 0.05)
    monkeypatch.setattr("benchmarks.fuzz.load", wait)
    (place,) = run_seeds("loads", 0, 1).crashes
    assert place.startswith("Hang: ")


def test_a_tally_comes_back_from_the_log() -> None:
    tally = run_seeds("whole", 0, 5)
    total = Tally("whole")
    total.add(msgspec.json.decode(msgspec.json.encode(tally), type=Tally))
    total.add(tally)
    assert (total.traces, total.read, total.clean) == (10, 2 * tally.read, 2 * tally.clean)
    assert sum(total.clean_after.values()) == 2 * sum(tally.clean_after.values())
