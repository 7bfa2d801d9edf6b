"""In which order the windows come, and when."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from syncscope.collect import windows
from syncscope.collect.plan import Plan
from syncscope.collect.windows import Windows
from tests.collect.windows.doubles import LOG, SMALL, FakeWindow, Notes, Torch, drive


def test_the_windows_come_in_order_and_each_from_an_idle_device(make: Callable[[Plan], Windows]) -> None:
    one = make(SMALL)
    assert drive(one) == 1 + 1 + 2 + (1 + 2) + (1 + 1)
    assert LOG == [
        "sync", "sync",
        "prepare timed", "listen", "sync", "start timed", "step 5", "step 6", "sync", "unlisten", "stop timed",
        "prepare attribution", "listen", "sync", "start attribution", "step 8", "sync", "unlisten",
        "stop attribution and detach", "done",
    ]  # fmt: skip
    recorded = one.recorded
    assert recorded.bare is not None and len(recorded.bare.steps_ns) == 2
    assert recorded.timed is not None and len(recorded.timed.boundaries_ns) == 3
    assert recorded.attribution is not None and len(recorded.attribution.boundaries_ns) == 2


def test_nothing_begins_before_the_program_uses_cuda(make: Any) -> None:
    torch = Torch()
    torch.ready = False
    one = make(SMALL, torch)
    for _ in range(10):
        one.boundary()
    assert LOG == []
    torch.ready = True
    drive(one)
    assert LOG[-1] == "done"


def test_full_mode_is_one_window(make: Callable[[Plan], Windows]) -> None:
    one = make(Plan(warmup=0, bare=0, steps=2, mode="full"))
    drive(one)
    assert [entry for entry in LOG if entry.startswith("prepare")] == ["prepare attribution"]
    assert one.recorded.timed is not None and one.recorded.attribution is None


def test_counting_rests_while_a_window_is_open_and_takes_over_its_steps(make: Any) -> None:
    one = make(Plan(warmup=0, settle=0, bare=1, steps=2, attribution=0), census=Notes())
    drive(one)
    told = [entry for entry in LOG if entry in ("prepare timed", "suspend", "resume", "done") or "add" in entry]
    assert told == ["suspend", "prepare timed", "add 3 steps", "resume", "done"]  # with the step that warms up


def test_a_window_waits_until_the_profiler_before_it_has_detached(
    make: Callable[[Plan], Windows], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(FakeWindow, "ready_at", float("inf"))
    one = make(Plan(warmup=0, bare=0, steps=1, attribution=0))
    for _ in range(5):
        one.boundary()
    assert not one.recording and LOG == []
    monkeypatch.setattr(FakeWindow, "ready_at", 0.0)
    drive(one)


def test_bare_steps_alone_are_timed_after_the_windows(drive_at: Callable[..., Windows]) -> None:
    one = drive_at(Plan(warmup=0, bare=6, bare_seconds=3.0).again())
    assert one.recorded.timed is None and one.recorded.bare is not None
    assert one.recorded.bare.steps_ns == (10_000_000,) * 6
    assert LOG == ["sync", "sync", "done"]


def test_windows_that_look_for_races_leave_no_room_for_those_of_another_phase(
    make: Callable[..., Windows], monkeypatch: pytest.MonkeyPatch
) -> None:
    class Races:
        notes: tuple[str, ...] = ()

        def __init__(self, *parts: object) -> None:
            pass

        def open(self) -> None: ...
        def close(self) -> None: ...
        def take(self) -> tuple[()]:
            return ()

    monkeypatch.setattr(windows, "HazardWindow", Races)
    one = make(Plan(warmup=0, bare=0, steps=1, attribution=0, hazards=2))
    seen = []
    while not one.finished:
        one.boundary()
        seen.append((one.recording, one.occupied))
    assert seen[-3:] == [(False, True), (False, True), (False, False)]
    one.interrupt()
    assert one.recorded.hazard_steps == 2
