"""Looks begin and end between steps, with a profiler that only takes notes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from syncscope.collect.looks import looks
from syncscope.collect.looks.looks import Looks
from syncscope.collect.looks.wanted import Expected
from syncscope.collect.paths import Paths
from syncscope.collect.sites.stacks import Stacks
from syncscope.collect.sites.sync_debug import sync_debug_mode
from syncscope.collect.sites.threads import Threads
from syncscope.schema.recording import Attributed
from tests.collect.test_schedule import phase

LOG: list[str] = []
FOUND = Attributed(stack=3, ordinal=0, ops=("aten::item",))


class FakeProfiler:
    had_cupti = True
    ready_at = 0.0
    fails = ""
    foreign: Callable[[], None]

    def __init__(self, torch: Any, *, cpu: bool, cuda: bool, on_foreign: Callable[[], None]) -> None:
        assert cpu and not cuda
        FakeProfiler.foreign = on_foreign

    def __getattr__(self, name: str) -> Any:
        def call(**options: Any) -> bytes:
            LOG.append(name)
            if name == FakeProfiler.fails:
                raise RuntimeError("no profiler")
            return b"{}"

        return call


class FakeRecorder:
    def __init__(self, *parts: Any, hears_copies: bool) -> None:
        assert hears_copies

    def open(self) -> None: ...
    def close(self) -> None: ...
    def take(self) -> tuple[()]:
        return ()


class Census:
    def suspend(self) -> None:
        LOG.append("suspend")

    def resume(self) -> None:
        LOG.append("resume")

    def add_window(self, events: Any, boundaries_ns: Any) -> None:
        LOG.append(f"add {len(boundaries_ns) - 1}")


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Looks]:
    LOG.clear()
    monkeypatch.setattr(looks, "KinetoWindow", FakeProfiler)
    monkeypatch.setattr(looks, "SiteRecorder", FakeRecorder)
    monkeypatch.setattr(looks, "find_ops", lambda *given: (FOUND,))
    monkeypatch.setattr(FakeProfiler, "had_cupti", True)
    monkeypatch.setattr(FakeProfiler, "fails", "")
    torch = SimpleNamespace(_C=SimpleNamespace(_autograd=SimpleNamespace(_profiler_enabled=lambda: False)))
    one = Looks(torch, Stacks(Paths(tmp_path)), Threads(), lambda phase: Census())
    yield one
    assert not one.open and sync_debug_mode._holds == 0


LOOK = ["suspend", "prepare", "start", "stop", "add 1", "resume"]


def test_the_wanted_step_is_looked_at_once(made: Looks) -> None:
    train = phase(1, "train", steps=0)
    made.want({1: (Expected(10, 10.0),)})
    for _ in range(60):
        made.end(train)
        made.begin(train)
        train.steps += 1
    made.end(train)
    assert LOG == LOOK and made.tried == {1: 1}
    assert made.found == {(3, 0): FOUND}


def test_a_step_that_is_left_is_counted_as_far_as_it_was_seen(made: Looks) -> None:
    train = phase(1, "train", steps=20)
    made.want({1: (Expected(10, 1.0),)})
    made.begin(train)
    made.end()
    assert [*LOOK[:-2], "add 0", "resume"] == LOG


def test_a_phase_without_steps_is_looked_at_when_it_comes(made: Looks) -> None:
    made.want({2: ()})
    made.begin(phase(1, "train", steps=20))
    assert LOG == []
    made.begin(phase(2, "epoch end"))
    made.end()
    assert [*LOOK[:-2], "add 0", "resume"] == LOG


def test_nothing_is_looked_at_before_kineto_has_had_cupti(made: Looks, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(FakeProfiler, "had_cupti", False)
    made.want({2: ()})
    made.begin(phase(2, "epoch end"))
    assert LOG == [] and not made.tried


def test_a_profiler_of_the_programs_is_left_alone(made: Looks, monkeypatch: pytest.MonkeyPatch) -> None:
    made.want({2: ()})
    made.begin(phase(2, "epoch end"))
    FakeProfiler.foreign()  # it starts one meanwhile
    assert not made.open
    made.want({2: ()})
    monkeypatch.setattr(made._torch._C._autograd, "_profiler_enabled", lambda: True)
    made.begin(phase(2, "epoch end"))
    assert not made.open


@pytest.mark.parametrize("fails", ["prepare", "start", "stop"])
def test_an_error_ends_all_looks_and_leaves_nothing(made: Looks, monkeypatch: pytest.MonkeyPatch, fails: str) -> None:
    monkeypatch.setattr(FakeProfiler, "fails", fails)
    for _ in range(2):
        made.want({2: ()})
        made.begin(phase(2, "epoch end"))
        made.end()
    assert made.tried == {2: 1} and LOG[-1] == "resume"
    assert "RuntimeError: no profiler" in made.failure
