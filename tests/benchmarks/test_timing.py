"""The timing of public programs: the clock of their optimizers, and ratios of runs of the same round."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks.public.running import HERE
from benchmarks.public.table import PROGRAMS
from benchmarks.public.timing import LONGER, clocked, longer, ratios, sessions, table

STEPS = """
import os, sys, time, torch
weight = torch.nn.Parameter(torch.ones(2))
optimizer = torch.optim.SGD([weight], lr=0.1)
for number in range(5):
    weight.sum().backward()
    optimizer.step()
    time.sleep(0.05 if number else 0.4)
if len(sys.argv) > 1:
    os._exit(0)
"""


@pytest.mark.parametrize("ending", [[], pytest.param(["at once"], marks=pytest.mark.slow)])
def test_the_clock_tells_the_time_of_the_loop_and_of_a_step(tmp_path: Path, ending: list[str]) -> None:
    pytest.importorskip("torch")
    variables = {**os.environ, "CLOCK": str(tmp_path / "clock"), "PYTHONPATH": str(HERE / "clock")}
    subprocess.run([sys.executable, "-c", STEPS, *ending], env=variables, check=True)

    said = clocked(tmp_path / "clock")

    assert said["steps"] == 5
    assert 0.55 < said["loop_s"] < 3
    assert 0.05 < said["step_s"] < 0.3


def test_of_several_processes_that_with_the_most_steps_counts(tmp_path: Path) -> None:
    for number, steps in enumerate((3, 90, 20)):
        (tmp_path / f"{number}.json").write_text(json.dumps({"steps": steps, "loop_s": 1.0, "step_s": 0.1}))

    assert clocked(tmp_path)["steps"] == 90
    assert clocked(tmp_path / "none") == {}


def test_a_run_is_held_against_the_run_alone_of_its_round(tmp_path: Path) -> None:
    def one(number: int, mode: str, loop: float, status: int | str = 0) -> str:
        return json.dumps({"program": "gin", "round": number, "mode": mode, "status": status, "seconds": loop + 5,
                           "steps": 9, "loop_s": loop, "step_s": 0.1})  # fmt: skip

    first, second = tmp_path / "first.jsonl", tmp_path / "second.jsonl"
    first.write_text(
        "\n".join([one(0, "bare", 10), one(0, "profile", 11), one(1, "bare", 10), one(1, "profile", 9, 1)])
    )
    second.write_text("\n".join([one(0, "bare", 20), one(0, "profile", 24), one(0, "watch", 21)]))

    measured = sessions([first, second])

    assert ratios(measured, "gin", "profile", "loop_s") == [1.1, 1.2]
    assert ratios(measured, "gin", "watch", "loop_s") == [1.05]
    assert "1.150 (1.100–1.200)" in table(measured)


def test_the_last_of_two_options_makes_a_program_longer() -> None:
    by_name = {program.name: program for program in PROGRAMS}

    assert set(LONGER) <= set(by_name)
    assert longer(by_name["gin"]).command.endswith("--epochs 25 --epochs 30")
    assert longer(by_name["vae"]).command == by_name["vae"].command
