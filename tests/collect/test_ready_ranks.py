"""Ranks that begin a window at the same step."""

from __future__ import annotations

import os
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from syncscope.collect.children.presence import still_recorded
from syncscope.collect.ready_ranks import AHEAD, ReadyRanks, ranks_here
from syncscope.collect.settling import Steps, go_on_together

PARENT = os.getppid()


def torch(world: int = 2, devices: int = 2) -> Any:
    return SimpleNamespace(
        distributed=SimpleNamespace(
            is_available=lambda: True, is_initialized=lambda: True, get_world_size=lambda: world
        ),
        cuda=SimpleNamespace(device_count=lambda: devices),
    )


def another_is_ready(folder: Path, name: str, run: str = "r1", pid: int = PARENT) -> None:
    (folder / f".syncscope-{run}-{pid}.{name}").touch()


class Passing:
    """Steps of a program."""

    def __init__(self, first: int) -> None:
        self._number = first

    def latest(self) -> int:
        return self._number

    def until_over(self, steps: Steps, most: int = 40) -> int:
        """The number of the step at which ``steps`` goes on, or before which ``most`` have passed."""
        for _ in range(most):
            if next(steps, "over") == "over":
                break
            self._number += 1
        return self._number


@pytest.fixture(autouse=True)
def no_launcher(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("LOCAL_WORLD_SIZE", raising=False)


def test_all_go_on_some_steps_after_the_last_was_ready(tmp_path: Path) -> None:
    ready = ReadyRanks(torch(), tmp_path / "new", "r1")
    ready.come("train2.1", 40)
    assert ready.first_step("train2.1") is None
    for name in ("train1.1@4", "train2.2@90"):
        another_is_ready(tmp_path / "new", name)
    another_is_ready(tmp_path / "new", "train2.1@70", run="r2")
    assert ready.first_step("train2.1") is None
    another_is_ready(tmp_path / "new", "train2.1@48")
    assert ready.first_step("train2.1") == 48 + AHEAD


def test_what_a_rank_was_ready_for_is_gone_when_it_is_ready_for_another(tmp_path: Path) -> None:
    ready = ReadyRanks(torch(), tmp_path, "r1")
    ready.come("train1.1", 4)
    ready.come("train2.1", 40)
    assert [path.name for path in tmp_path.iterdir()] == [f".syncscope-r1-{os.getpid()}.train2.1@40"]
    ready.leave()
    assert not list(tmp_path.iterdir())


def test_a_rank_of_an_earlier_launch_that_was_killed_is_not_ready(tmp_path: Path) -> None:
    ready = ReadyRanks(torch(), tmp_path, "r1")
    ready.come("train2.1", 40)
    another_is_ready(tmp_path, "train2.1@48", pid=2**22 + 1)
    assert ready.first_step("train2.1") is None


def test_ranks_that_do_not_come_are_not_awaited_for_long(tmp_path: Path) -> None:
    ready = ReadyRanks(torch(), tmp_path, "r1")
    ready.come("train2.1", 40, -1.0)
    assert ready.first_step("train2.1") == -1


def test_where_there_is_no_folder_nobody_is_awaited(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    ready = ReadyRanks(torch(), tmp_path / "file", "r1")
    ready.come("train2.1", 40)
    assert ready.first_step("train2.1") == -1


@pytest.mark.parametrize(
    ("world", "devices", "local", "here"),
    [(2, 2, "", 2), (16, 8, "8", 8), (2, 8, "4", 2), (16, 8, "", None), (1, 1, "", None), (4, 1, "x", None)],
)
def test_the_ranks_of_this_machine(
    world: int, devices: int, local: str, here: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LOCAL_WORLD_SIZE", local)
    assert ranks_here(torch(world, devices)) == here


def test_a_rank_goes_on_at_the_step_that_was_agreed(tmp_path: Path) -> None:
    passing = Passing(40)
    steps = go_on_together(ReadyRanks(torch(), tmp_path, "r1"), "train2.1", passing.latest, 1e7, 9.0)
    assert passing.until_over(steps, most=5) == 45
    another_is_ready(tmp_path, "train2.1@43")
    assert passing.until_over(steps) == 43 + AHEAD


@pytest.mark.parametrize("alone", [True, False])
def test_ranks_that_hear_nothing_of_each_other_go_on_at_a_round_step(tmp_path: Path, alone: bool) -> None:
    ready = ReadyRanks(torch(world=64), tmp_path, "r1")
    passing = Passing(41)
    assert passing.until_over(go_on_together(None if alone else ready, "train2.1", passing.latest, 1e7, 9.0)) == 48


def test_what_a_killed_rank_was_ready_for_is_swept_away_and_is_no_process_that_is_recorded(tmp_path: Path) -> None:
    another_is_ready(tmp_path, "train2.1@48")
    another_is_ready(tmp_path, "train2.1@48", pid=2**22 + 1)
    assert still_recorded(tmp_path, "r1") == set()
    assert [path.name for path in tmp_path.iterdir()] == [f".syncscope-r1-{PARENT}.train2.1@48"]
