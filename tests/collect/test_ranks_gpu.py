"""Several ranks under torchrun: one trace each, one report."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from syncscope.schema.report import Report

torch = pytest.importorskip("torch", reason="the collector records PyTorch programs")
pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(torch.cuda.device_count() < 2, reason="needs two GPUs: there are fewer here"),
]

ROOT = Path(__file__).parents[2]
PROGRAM = """
import os
import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel
dist.init_process_group("nccl")
torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
net = DistributedDataParallel(torch.nn.Linear(512, 512).cuda())
opt = torch.optim.SGD(net.parameters(), lr=0.1)
x = torch.randn(64, 512, device="cuda")
for i in range(40):
    opt.zero_grad()
    loss = net(x).square().mean()
    loss.backward()
    loss.item()
    opt.step()
dist.destroy_process_group()
"""


def test_each_rank_writes_its_trace_and_there_is_one_report(tmp_path: Path) -> None:
    script = tmp_path / "train.py"
    script.write_text(PROGRAM)
    out = tmp_path / "out"
    command = [sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", "2", "-m", "syncscope", "profile"]
    env = {**os.environ, "PYTHONPATH": f"{ROOT}:{os.environ.get('PYTHONPATH', '')}"}
    done = subprocess.run(
        [*command, "-o", str(out), str(script)], cwd=tmp_path, env=env, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    names = {path.name for path in out.iterdir()}
    assert names == {"trace.rank0.json.gz", "trace.rank1.json.gz", "report.json", "report.html"}
    report = Report.from_json((out / "report.json").read_bytes())
    assert [trace.rank for trace in report.traces] == [0, 1]
    waits = [(f.rule, f.site.line if f.site else None) for f in report.findings if f.rule.startswith("SYN")]
    assert ("SYN102", PROGRAM[: PROGRAM.index("loss.item()")].count("\n") + 1) in waits
