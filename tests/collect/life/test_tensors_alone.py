"""A program of tensors alone, without modules and optimisers, lives as it does alone while its loops are heard."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tests.collect.life.runner import Outcome, Place, finish, prepare, start, without_ours
from tests.collect.life.test_hosts import runs_of

pytestmark = [
    pytest.mark.skipif(sys.platform == "win32", reason="needs POSIX signals and fork"),
    pytest.mark.skipif(sys.version_info < (3, 12), reason="Python tells turns of loops from 3.12 on"),
]

PLACE = Place(standin=True)

PROGRAM = """
import sys
import time
import torch

def simulate(steps):
    state = torch.randn(8, 64, device="cuda")
    for step in range(steps):
        for _ in range(2):
            time.sleep(0.001)
        state.item()
        if step == fails_at != 0:
            raise ValueError(step)

fails_at = int(sys.argv[1])
torch.cuda.init()
try:
    for epoch in range(2):
        simulate(700)
except ValueError as error:
    print("fails in step", error)
if fails_at:
    simulate(700)
print(sys.gettrace(), sys.getprofile(), [sys.monitoring.get_tool(number) for number in (0, 1, 2, 5)])
"""


DENSE = """
import time
import torch

torch.cuda.init()
state = torch.randn(8, 64, device="cuda")

for epoch in range(12):
    for batch in range(200):
        for k in range(12):
            state.measure()
        time.sleep(0.002)
    state.measure()

for batch in range(100):
    state.measure()
    time.sleep(0.002)
"""


def test_what_follows_loops_of_which_steps_are_left_out_is_counted(tmp_path: Path) -> None:
    (prepare(tmp_path / "ours") / "program.py").write_text(DENSE)
    outcome = finish(start(tmp_path / "ours", [*PLACE.command(), "program.py"], PLACE), tmp_path / "ours")
    assert outcome.status == 0, outcome.stderr
    (recording,) = runs_of(tmp_path / "ours")
    recorded, frames, stacks = recording["run"], recording["frames"], recording["stacks"]
    assert isinstance(recorded, dict) and isinstance(frames, list) and isinstance(stacks, list)
    phases = {number: phase["name"] for number, phase in enumerate(recorded["phases"])}
    other = next(phase for phase in recorded["phases"] if phase["name"] == "other")
    assert other["line"] == 9 and 0 < other["counted_steps"] < other["steps"] / 2
    found: dict[tuple[str, int], int] = {}
    for wait in recorded["waits"]:
        key = phases[wait["phase"]], frames[stacks[wait["stack"]][-1]]["line"]
        found[key] = found.get(key, 0) + wait["count"]
    assert found["epoch end", 16] == 100
    assert 6 <= found["epoch end", 13] <= 11  # of 12, those after the loop was found, and where no window was open


def run(folder: Path, command: list[str], fails_at: int) -> Outcome:
    (prepare(folder) / "program.py").write_text(PROGRAM)
    return finish(start(folder, [*command, "program.py", str(fails_at)], PLACE), folder)


@pytest.mark.parametrize("fails_at", [0, 650])
def test_its_turns_are_steps_with_windows(tmp_path: Path, fails_at: int) -> None:
    expected = run(tmp_path / "alone", [sys.executable], fails_at)
    found = without_ours(run(tmp_path / "ours", PLACE.command(), fails_at))
    assert found == expected
    (recording,) = runs_of(tmp_path / "ours")
    recorded, steps = recording["run"], recording["steps"]
    assert isinstance(recorded, dict) and isinstance(steps, dict)
    phases = {phase["function"]: phase for phase in recorded["phases"] if phase["steps"]}
    assert phases.keys() == {"simulate"} and phases["simulate"]["line"] == 8
    assert phases["simulate"]["source"] == steps["source"] == "turn"
    assert 300 < phases["simulate"]["steps"] < 1400 and len(steps["boundaries_ns"]) == 3
    assert phases["simulate"]["recorded"] and recorded["complete"] and recorded["overhead_share"] < 0.02
