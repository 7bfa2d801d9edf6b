"""``syncscope profile`` on programs of tensors alone, on a real GPU: the turns of their loops are steps."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from syncscope.schema.report import Report

torch = pytest.importorskip("torch", reason="the collector records PyTorch programs")
pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU: there is none here"),
    pytest.mark.skipif(sys.version_info < (3, 12), reason="Python tells turns of loops from 3.12 on"),
]

ROOT = Path(__file__).parents[2]

SIMULATION = """
import sys
import time
import torch

weights = torch.randn(1024, 1024, device="cuda") / 32

def simulate(seconds):
    u, steps, energies = torch.rand(1024, 1024, device="cuda"), 0, []
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        for _ in range(4):
            u = torch.tanh(u @ weights)
            u = u + 0.1 * torch.roll(u, 1, 0)
        energies.append(u.square().sum().item())
        time.sleep(0.001)
        steps += 1
    return steps

print(sum(simulate(2) for epoch in range(int(sys.argv[1]))))
"""

FEATURES = """
import time
import torch

rows = torch.rand(64, 256, device="cuda")
total = 0

for number in range(5000):
    rows = torch.sin(rows) @ torch.rand(256, 256).cuda()
    total += float(rows.mean())
    time.sleep(0.0005)

for number in range(5000):
    total += rows.std(0).cpu().numpy().sum()
    time.sleep(0.0006)

print("done")
"""


GRAPHS = """
import time
import torch

model = torch.nn.Linear(256, 256).cuda()
optimizer = torch.optim.Adam(model.parameters(), capturable=True)
rows = torch.rand(64, 256, device="cuda")

def learn():
    optimizer.zero_grad(set_to_none=True)
    loss = model(rows).square().mean()
    loss.backward()
    optimizer.step()
    return loss

side = torch.cuda.Stream()
side.wait_stream(torch.cuda.current_stream())
with torch.cuda.stream(side):
    for _ in range(3):
        learn()
torch.cuda.current_stream().wait_stream(side)
graph = torch.cuda.CUDAGraph()
with torch.cuda.graph(graph):
    loss = learn()

total = 0.0
for step in range(4000):
    graph.replay()
    total += loss.item()
    time.sleep(0.0015)
print(total > 0)
"""


def profile(folder: Path, program: str, *options: str, arguments: tuple[str, ...] = ()) -> tuple[str, Report]:
    """What the program printed, and the report."""
    (folder / "program.py").write_text(program)
    command = [sys.executable, "-m", "syncscope", "profile", "-o", "out", *options, "program.py", *arguments]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout, Report.from_json((folder / "out" / "report.json").read_bytes())


def test_the_turns_of_a_simulation_are_steps_with_windows(tmp_path: Path) -> None:
    printed, report = profile(tmp_path, SIMULATION, arguments=("4",))
    trace = report.traces[0]
    run = trace.run
    assert run is not None and run.complete and trace.steps.source == "turn" and trace.steps.count == 5
    assert trace.phase == "other" and trace.steps.bare_ms is not None
    other = next(phase for phase in run.phases if phase.name == "other")
    assert other.where == "program.py:11 simulate" and other.recorded
    made = int(printed)
    assert made / 2 < other.steps <= made
    assert other.waits_per_step == pytest.approx(1, rel=0.02)
    assert run.counted is not None and run.counted.overhead_share is not None
    finding = next(each for each in report.findings if each.rule == "SYN102")
    assert finding.site is not None and finding.site.line == 15
    assert finding.per_step == 1 and finding.run_per_step == pytest.approx(1, rel=0.02)
    assert finding.op is not None  # the window with ops was recorded, too
    assert not report.not_checked or "SYN102" not in {each.rule for each in report.not_checked}


def test_two_loops_of_a_script_are_two_phases(tmp_path: Path) -> None:
    printed, report = profile(tmp_path, FEATURES)
    assert printed == "done\n"
    run = report.traces[0].run
    assert run is not None
    steps = {phase.where: phase.steps for phase in run.phases if phase.steps}
    assert steps.keys() == {"program.py:8 <module>", "program.py:13 <module>"}
    assert all(1000 < count <= 5000 for count in steps.values())


def test_the_program_is_ended_after_the_windows_of_its_loop(tmp_path: Path) -> None:
    begin = time.monotonic()
    printed, report = profile(tmp_path, SIMULATION, "--stop", arguments=("40",))
    assert printed == "" and time.monotonic() - begin < 60
    run = report.traces[0].run
    assert run is not None and run.stopped and report.traces[0].steps.source == "turn"


def test_turns_that_replay_the_steps_of_an_optimizer_are_steps_of_its_training(tmp_path: Path) -> None:
    printed, report = profile(tmp_path, GRAPHS)
    assert printed == "True\n"
    trace = report.traces[0]
    run = trace.run
    assert run is not None and (trace.phase, trace.steps.source, trace.steps.count) == ("train", "turn", 5)
    train = next(phase for phase in run.phases if phase.name == "train")
    assert train.recorded and 2000 < train.steps <= 4000
    assert train.waits_per_step == pytest.approx(1, rel=0.02)
    finding = next(each for each in report.findings if each.rule == "SYN102")
    assert finding.site is not None and finding.site.expression == "loss.item()"
    assert finding.per_step == 1 and finding.run_per_step == pytest.approx(1, rel=0.02)
    assert any("captured in a CUDA graph" in warning for warning in trace.warnings)
