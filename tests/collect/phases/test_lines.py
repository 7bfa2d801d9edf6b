"""Where the program is in each phase, by looks from another thread."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from syncscope.collect.paths import Paths
from syncscope.collect.phases import lines as module
from syncscope.collect.phases.lines import PhaseLines
from syncscope.collect.sites.stacks import Stacks
from syncscope.schema.counting import RecordedPhase

pytest.importorskip("torch", reason="the hooks are PyTorch's")

from tests.collect.phases.following import Followed


class Program:
    """A program that this thread runs, and the looks at it."""

    def __init__(self) -> None:
        self.tracker = Followed().tracker
        self.stacks = Stacks(Paths(Path(__file__).parent))
        self.lines = PhaseLines(self.tracker, self.stacks)

    def look(self, times: int = 1) -> None:
        for _ in range(times):
            thread = threading.Thread(target=self.lines.look)
            thread.start()
            thread.join()

    def phases(self) -> tuple[RecordedPhase, ...]:
        return self.lines.added_to(self.tracker.recorded())

    def functions(self, phase: RecordedPhase) -> list[tuple[str, int]]:
        """The function of each line of a phase, around ``look``, and how often it was there."""
        frames, stacks = self.stacks.resolve()
        assert all(frames[stacks[one.stack][-1]].function.endswith("look") for one in phase.lines)
        return [(frames[stacks[one.stack][-2]].function, one.samples) for one in phase.lines]


def fit(look: Callable[[int], None]) -> None:
    look(3)


def predict(look: Callable[[int], None]) -> None:
    look(1)


@pytest.fixture
def program() -> Program:
    return Program()


def test_lines_are_those_of_the_users_innermost_frames(program: Program) -> None:
    fit(program.look)
    predict(program.look)
    (start,) = program.phases()
    assert start.samples == 4
    assert program.functions(start) == [("fit", 3), ("predict", 1)]


def test_looks_at_a_phase_that_was_part_of_another_are_told_of_that(program: Program) -> None:
    start = program.tracker.current
    other = program.tracker._make("epoch end")
    program.tracker._enter(other)
    fit(program.look)
    program.tracker._fold(other, start)
    first, second = program.phases()
    assert (first.samples, second.samples) == (3, 0)
    assert program.functions(first) == [("fit", 3)] and not second.lines


def test_of_many_stacks_only_some_are_kept_and_all_looks_counted(
    program: Program, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "MOST_STACKS", 1)
    fit(program.look)
    predict(program.look)
    (start,) = program.phases()
    assert start.samples == 4 and program.functions(start) == [("fit", 3)]


def test_a_thread_that_is_gone_is_nowhere(program: Program) -> None:
    program.tracker._thread = 0
    program.look()
    (start,) = program.phases()
    assert (start.samples, start.lines) == (0, ())
