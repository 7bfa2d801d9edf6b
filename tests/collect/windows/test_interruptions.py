"""Windows that the program cuts short."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from syncscope.collect import windows
from syncscope.collect.plan import Plan
from syncscope.collect.windows import PATIENT, TOLERANT, Windows
from syncscope.schema.recording import Bare
from tests.collect.windows.doubles import LOG, Clock, FakeWindow


def test_a_program_that_ends_early_keeps_its_whole_steps(make: Callable[[Plan], Windows]) -> None:
    one = make(Plan(warmup=0, bare=0, steps=9))
    for _ in range(5):
        one.boundary()
    one.close("The program ended.")
    assert one.recorded.timed is not None and len(one.recorded.timed.boundaries_ns) == 4
    assert one.recorded.notes == ["The program ended."]
    assert LOG[-3:] == ["unlisten", "stop timed", "done"]


def test_a_window_without_a_whole_step_is_no_window(make: Callable[[Plan], Windows]) -> None:
    one = make(Plan(warmup=0, bare=0, steps=9))
    one.boundary()
    one.boundary()
    one.close("The program ended.")
    assert one.recorded.timed is None
    assert "stop timed" in LOG


def test_the_programs_own_profiler_ends_the_window(make: Callable[[Plan], Windows]) -> None:
    one = make(Plan(warmup=0, bare=0, steps=9))
    for _ in range(4):
        one.boundary()
    FakeWindow.current.on_foreign()
    assert one.finished
    assert "profiler of its own" in one.recorded.notes[0]
    assert one.recorded.timed is not None


def test_discarded_windows_leave_nothing(make: Callable[[Plan], Windows]) -> None:
    one = make(Plan(warmup=0, bare=0, steps=4))
    for _ in range(4):
        one.boundary()
    one.discard()
    assert one.finished and LOG[-1] == "stop timed"


def test_an_interrupted_window_begins_again_with_its_warm_up(make: Callable[[Plan], Windows]) -> None:
    one = make(Plan(warmup=0, bare=0, steps=4, attribution=0))
    for _ in range(3):
        one.boundary()
    assert one.recording
    one.interrupt()  # after one of four steps
    assert not one.recording and not one.finished
    LOG.clear()
    for _ in range(6):
        one.boundary()
    assert LOG[:4] == ["prepare timed", "listen", "sync", "start timed"]
    assert one.finished and one.recorded.timed is not None and len(one.recorded.timed.boundaries_ns) == 5


def test_an_interrupted_window_with_most_of_its_steps_is_enough(make: Callable[[Plan], Windows]) -> None:
    one = make(Plan(warmup=0, bare=0, steps=4, attribution=0))
    for _ in range(5):
        one.boundary()
    one.interrupt()
    assert one.finished and LOG[-2:] == ["stop timed and detach", "done"]
    assert one.recorded.timed is not None and len(one.recorded.timed.boundaries_ns) == 4


def test_a_window_that_is_always_interrupted_is_content_with_less_and_less(make: Callable[[Plan], Windows]) -> None:
    one = make(Plan(warmup=0, bare=0, steps=4, attribution=0))
    for number in range(PATIENT - 1):
        for _ in range(3):
            one.boundary()
        one.interrupt()
        assert not one.finished, number
    for _ in range(3):
        one.boundary()
    one.interrupt()
    assert one.finished and one.recorded.timed is not None and len(one.recorded.timed.boundaries_ns) == 2


def test_a_phase_of_four_steps_at_a_time_has_a_window_of_its_own_steps(make: Callable[[Plan], Windows]) -> None:
    """Though they are never as long as the bare ones: an evaluation of four batches between two epochs."""
    one = make(Plan(warmup=0, bare=0, steps=5, attribution=0))
    one.recorded.bare = Bare(steps_ns=(10**12,))
    for _ in range(PATIENT + 1):
        assert not one.finished
        for _ in range(4):
            one.boundary()
        one.interrupt()
    assert one.finished and one.recorded.timed is not None and len(one.recorded.timed.boundaries_ns) == 3


@pytest.mark.parametrize(("long_ms", "bare_ms", "steps"), [(100, 10, 3), (25, 10, 5), (100, 0, 5)])
def test_a_long_step_between_two_times_of_the_loop_is_no_step_of_the_window(
    make: Callable[[Plan], Windows], monkeypatch: pytest.MonkeyPatch, long_ms: int, bare_ms: int, steps: int
) -> None:
    """An evaluation of two data sets, one after the other: scores are computed between them."""
    clock = Clock()
    monkeypatch.setattr(windows, "time", clock)
    one = make(Plan(warmup=0, bare=0, steps=5, attribution=0, settle=0))
    one.recorded.bare = Bare(steps_ns=(bare_ms * 1_000_000,)) if bare_ms else None
    lengths = [10, 10, 10, 10, 10, long_ms, 10, 10]
    for number, length in enumerate(lengths, 1):
        clock.now += length * 1_000_000
        one.boundary(number, began_anew=length == long_ms)
        if one.finished:
            break
    assert one.recorded.timed is not None and len(one.recorded.timed.boundaries_ns) == steps + 1
    assert LOG.count("done") == 1


def test_where_no_step_comes_without_an_interruption_windows_go_on_through_them(make: Any) -> None:
    one = make(Plan(warmup=0, bare=0, steps=2, attribution=0))
    for _ in range(TOLERANT):
        one.boundary()
        assert one.recording
        one.interrupt()
    for _ in range(4):
        one.boundary()
        one.interrupt()
    assert one.finished and one.recorded.timed is not None and len(one.recorded.timed.boundaries_ns) == 3
