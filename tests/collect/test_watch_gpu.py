"""``syncscope watch`` on a real GPU: what is counted is what PyTorch warns of, in its place and phase."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from syncscope.schema.report import Report

torch = pytest.importorskip("torch", reason="the collector counts PyTorch programs")
pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU: there is none here"),
]

ROOT = Path(__file__).parents[2]

PROGRAM = """
import torch
net = torch.nn.Linear(64, 64).cuda()
opt = torch.optim.SGD(net.parameters(), lr=0.1)
x = torch.randn(8, 64, device="cuda")

def evaluate():
    net.eval()
    with torch.no_grad():
        for _ in range(20):
            net(x).sum().item()
    net.train()

def train():
    for step in range(300):
        opt.zero_grad()
        loss = net(x).sum()
        loss.backward()
        opt.step()
        if step % 10 == 0:
            loss.item()
        if step % 100 == 99:
            evaluate()

train()
print("done")
"""


LATE = "import time, torch\nheld = torch.zeros(8, device='cuda')\ntime.sleep(3)\n" + PROGRAM.lstrip()
"""A state is written before its first step."""

HOLDING = "import sys, torch\nheld = torch.zeros(8, device='cuda')\nprint('held', flush=True)\nsys.stdin.read()"
"""Uses the GPU until its input ends."""


def watch(folder: Path, *options: str, program: str = PROGRAM) -> subprocess.CompletedProcess[str]:
    (folder / "train.py").write_text(program)
    command = [sys.executable, "-m", "syncscope", "watch", "-o", "out/report.json", *options, "train.py"]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)


def test_every_wait_is_counted_in_its_phase(tmp_path: Path) -> None:
    found = watch(tmp_path)
    assert (found.returncode, found.stdout) == (0, "done\n"), found.stderr
    run = Report.from_json((tmp_path / "out" / "report.json").read_bytes()).traces[0].run
    assert run is not None and run.complete
    phases = {phase.kind: phase for phase in run.phases}
    train, evaluate = phases["train"], phases["evaluate"]
    assert 290 <= train.steps <= 300 and evaluate.times == 3
    assert train.waits_per_step == pytest.approx(0.1, rel=0.1)
    assert evaluate.waits_per_step == pytest.approx(1, rel=0.1)
    assert run.counted is not None and (run.counted.overhead_share or 0) < 0.02


@pytest.mark.parametrize("program", [PROGRAM, LATE], ids=["at once", "late"])
def test_another_process_on_the_gpu_is_told(tmp_path: Path, program: str) -> None:
    command = [sys.executable, "-c", HOLDING]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as other:
        assert other.stdin is not None and other.stdout is not None
        assert other.stdout.readline() == "held\n"
        found = watch(tmp_path, program=program)
        other.stdin.close()
    assert found.returncode == 0, found.stderr
    run = Report.from_json((tmp_path / "out" / "report.json").read_bytes()).traces[0].run
    assert run is not None and run.shared_device is True


def test_a_new_line_in_training_ends_the_program(tmp_path: Path) -> None:
    (tmp_path / "none.json").write_text('{"format": 1, "findings": {}}')
    found = watch(tmp_path, "--baseline", "none.json", "--fail")
    assert found.returncode == 1
    assert "syncscope: new wait: train.py:" in found.stderr and "loss.item() in train (train)" in found.stderr
    assert "net(x).sum().item()" not in [line for line in found.stderr.splitlines() if "new wait" in line]


def test_the_api_counts_a_block_and_hands_out_its_report(tmp_path: Path) -> None:
    import syncscope

    net = torch.nn.Linear(64, 64).cuda()
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    x = torch.randn(8, 64, device="cuda")
    heard: list[Any] = []
    with syncscope.watch(
        tmp_path / "out", on_new=heard.append, exporters=[f"jsonl={tmp_path}/waits.jsonl"]
    ) as watching:
        for _ in range(50):
            optimizer.zero_grad()
            loss = net(x).sum()
            loss.backward()
            optimizer.step()
            loss.item()
    report = watching.report()
    assert report is not None and report.traces[0].run is not None
    assert [line.expression for line in heard] == ["loss.item()"]
    assert (tmp_path / "out" / "report.json").is_file()
    assert json.loads((tmp_path / "waits.jsonl").read_text().splitlines()[-1])["lines"] == 1
