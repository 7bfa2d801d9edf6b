"""What all callbacks do, without a trainer."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from syncscope.callbacks import training
from syncscope.callbacks.training import Training
from syncscope.collect.annotations import begin, end


class FakeRecorder:
    """Stands where ``watch`` and ``profile`` would."""

    def __init__(self, made: list[FakeRecorder], folder: str, **options: Any) -> None:
        self.folder, self.options = folder, options
        self.steps = 0
        self.over = False
        made.append(self)

    def start(self) -> FakeRecorder:
        begin(self)
        return self

    __enter__ = start

    def stop(self, *error: object) -> None:
        if not self.over:
            end(self)

    __exit__ = stop

    def open(self) -> None:
        pass

    def step(self) -> None:
        self.steps += 1

    def close(self) -> None:
        self.over = True

    abandon = close


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> Iterator[dict[str, list[FakeRecorder]]]:
    found: dict[str, list[FakeRecorder]] = {"watch": [], "profile": []}
    for name, kept in found.items():
        monkeypatch.setattr(training, name, partial(FakeRecorder, kept))
    yield found
    for recorder in (*found["watch"], *found["profile"]):
        recorder.stop()


def test_each_step_of_the_trainer_is_told_once(made: dict[str, list[FakeRecorder]]) -> None:
    run = Training("out", None, {"every": 60})
    run.begin(0)
    for step in (0, 1, 1, 2, 2, 3):  # two batches make one step
        run.stepped(step)
    run.end()
    (watch,) = made["watch"]
    assert (watch.steps, watch.over, watch.folder, watch.options) == (3, True, "out", {"every": 60})
    assert made["profile"] == []


def test_windows_begin_at_the_step_that_is_asked_for(made: dict[str, list[FakeRecorder]]) -> None:
    run = Training("out", 2)
    run.begin(0)
    run.stepped(1)
    assert made["profile"] == []
    run.stepped(2)
    run.stepped(3)
    (profile,) = made["profile"]
    assert Path(profile.folder) == Path("out/profile") and profile.steps == 1 and not profile.over
    run.end()
    run.end()
    assert profile.over


def test_a_training_that_goes_on_after_that_step_records_at_once(made: dict[str, list[FakeRecorder]]) -> None:
    run = Training("out", 2)
    run.begin(7)
    assert len(made["profile"]) == 1


def test_inside_another_recording_only_steps_are_told(made: dict[str, list[FakeRecorder]]) -> None:
    outer = FakeRecorder([], "outer").start()
    run = Training("out", 0)
    run.begin(0)
    run.stepped(1)
    run.end()
    assert made == {"watch": [], "profile": []}
    assert outer.steps == 1 and not outer.over
    outer.stop()


def test_a_second_training_is_watched_anew(made: dict[str, list[FakeRecorder]]) -> None:
    run = Training("out", None)
    for _ in range(2):
        run.begin(0)
        run.stepped(1)
        run.end()
    assert [watch.steps for watch in made["watch"]] == [1, 1]


def test_steps_outside_a_training_are_not_told(made: dict[str, list[FakeRecorder]]) -> None:
    run = Training("out", 0)
    run.stepped(1)
    run.end()
    assert made == {"watch": [], "profile": []}


def test_the_package_loads_no_trainer_and_no_torch() -> None:
    code = (
        "import sys, syncscope, syncscope.callbacks; "
        "print({'torch', 'lightning', 'transformers', 'pytorch_lightning', 'pandas'} & set(sys.modules))"
    )
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "set()\n"
