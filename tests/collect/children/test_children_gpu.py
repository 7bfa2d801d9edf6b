"""Processes that a recorded program starts are recorded, with PyTorch on a GPU."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from syncscope.schema.report import Report

torch = pytest.importorskip("torch", reason="the collector records PyTorch programs")
pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU: there is none here"),
]
TWO_GPUS = pytest.mark.skipif(torch.cuda.device_count() < 2, reason="needs two GPUs: there are fewer here")

ROOT = Path(__file__).parents[3]

WORK = """
import os
import sys
import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

class Net(torch.nn.Module):
    def __init__(self, unused):
        super().__init__()
        self.used, self.spare = torch.nn.Linear(256, 256), torch.nn.Linear(256, 256)
        self.unused = unused
    def forward(self, x):
        return self.used(x) if self.unused else self.spare(self.used(x))

def work(rank, world, unused=False, steps=40):
    torch.cuda.set_device(rank % torch.cuda.device_count())
    dist.init_process_group(BACKEND, INIT, rank=rank, world_size=world)
    net = DistributedDataParallel(Net(unused).cuda(), find_unused_parameters=unused)
    opt = torch.optim.SGD(net.parameters(), lr=0.1)
    x = torch.randn(64, 256, device="cuda")
    for _ in range(steps):
        opt.zero_grad()
        loss = net(x).square().mean()
        loss.backward()
        loss.item()
        opt.step()
    dist.destroy_process_group()
    print("rank", rank, "is done", flush=True)
"""

SPAWNS = """
from worker import work
if __name__ == "__main__":
    import torch.multiprocessing as mp
    mp.spawn(work, args=(WORLD, UNUSED), nprocs=WORLD)
    print("spawned")
"""

LAUNCHED = """
import os
from worker import work
work(int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"]))
"""

LAUNCHES = """
import subprocess, sys
command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "WORLD", "launched.py"]
sys.exit(subprocess.run(command, stderr=subprocess.DEVNULL).returncode)
"""

LOADS = """
import torch
class Squares(torch.utils.data.Dataset):
    def __len__(self):
        return 64
    def __getitem__(self, index):
        return torch.tensor(float(index**2))
if __name__ == "__main__":
    net = torch.nn.Linear(1, 1).cuda()
    opt = torch.optim.SGD(net.parameters(), lr=1e-9)
    for context in ("fork", "spawn"):
        loader = torch.utils.data.DataLoader(Squares(), batch_size=2, num_workers=2, multiprocessing_context=context)
        for batch in loader:
            loss = net(batch[:, None].cuda()).sum()
            loss.backward()
            opt.step()
    print("loaded")
"""

FAILS = """
import sys
from worker import work
def fail_or_wait(rank):
    if rank == 1:
        work(0, 1, steps=30)
        raise ValueError("in rank 1")
    import torch, time
    torch.ones(1, device="cuda").item()
    time.sleep(600)
if __name__ == "__main__":
    import torch.multiprocessing as mp
    mp.spawn(fail_or_wait, nprocs=2)
"""


def record(folder: Path, program: str, *, world: int = 1, unused: bool = False) -> subprocess.CompletedProcess[str]:
    """Record ``program`` in ``folder``. Each process trains for more steps than the windows take."""
    backend = "nccl" if torch.cuda.device_count() >= world else "gloo"
    start = "None" if program is LAUNCHES else repr(f"file://{folder}/group")
    worker = WORK.replace("BACKEND", repr(backend)).replace("INIT", start)
    (folder / "worker.py").write_text(worker)
    (folder / "launched.py").write_text(LAUNCHED)
    (folder / "program.py").write_text(program.replace("WORLD", str(world)).replace("UNUSED", str(unused)))
    environment = {**os.environ, "PYTHONPATH": f"{ROOT}{os.pathsep}{os.environ.get('PYTHONPATH', '')}"}
    command = [sys.executable, "-m", "syncscope", "profile", "-o", "out", "program.py"]
    return subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, check=False, timeout=240
    )  # fmt: skip


def traces(folder: Path) -> list[str]:
    return sorted(path.name for path in (folder / "out").glob("*.json.gz"))


def check_ranks(folder: Path, world: int) -> None:
    assert traces(folder) == [f"trace.rank{rank}.json.gz" for rank in range(world)]
    report = Report.from_json((folder / "out" / "report.json").read_bytes())
    assert [trace.rank for trace in report.traces] == list(range(world))
    line = WORK[: WORK.index("loss.item()")].count("\n") + 1
    assert ("SYN102", line) in [(f.rule, f.site.line if f.site else None) for f in report.findings]


@pytest.mark.parametrize("world", [1, pytest.param(2, marks=TWO_GPUS)])
def test_workers_of_spawn_are_ranks(tmp_path: Path, world: int) -> None:
    done = record(tmp_path, SPAWNS, world=world)
    assert done.returncode == 0, done.stderr
    assert sorted(done.stdout.splitlines()) == [*(f"rank {rank} is done" for rank in range(world)), "spawned"]
    check_ranks(tmp_path, world)


@pytest.mark.parametrize("world", [1, pytest.param(2, marks=TWO_GPUS)])
def test_workers_of_a_launcher_inside_the_program_are_ranks(tmp_path: Path, world: int) -> None:
    done = record(tmp_path, LAUNCHES, world=world)
    assert done.returncode == 0, done.stderr
    check_ranks(tmp_path, world)


@pytest.mark.parametrize("world", [1, pytest.param(2, marks=TWO_GPUS)])
def test_unused_parameters_leave_stderr_to_the_program(tmp_path: Path, world: int) -> None:
    done = record(tmp_path, SPAWNS, world=world, unused=True)
    assert done.returncode == 0, done.stderr
    before = done.stderr.partition("syncscope: the program is over")[0]
    assert [line for line in before.splitlines() if not re.match(r"\[(W|rank)", line)] == []  # NCCL's own
    check_ranks(tmp_path, world)


def test_workers_of_a_loader_write_nothing(tmp_path: Path) -> None:
    done = record(tmp_path, LOADS)
    assert done.returncode == 0 and done.stdout == "loaded\n", done.stderr
    assert traces(tmp_path) == ["trace.json.gz"]


def test_a_worker_that_fails_ends_the_others_as_it_does_alone(tmp_path: Path) -> None:
    done = record(tmp_path, FAILS)
    assert done.returncode == 1 and "ValueError: in rank 1" in done.stderr
    assert any(name.startswith("trace.rank0") for name in traces(tmp_path)), done.stderr
