"""Bare steps, their stamps, the loader and the GPU's sensors, of a program on a real GPU."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import pytest

from syncscope.schema.recording import Recording
from syncscope.trace import load

torch = pytest.importorskip("torch", reason="the collector records PyTorch programs")
pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU: there is none here"),
]

ROOT = Path(__file__).parents[3]
PROGRAM = """
import time
import torch

class Rows(torch.utils.data.Dataset):
    def __len__(self):
        return 6400
    def __getitem__(self, index):
        time.sleep(0.0005)
        return torch.full((64,), float(index))

def main():
    net = torch.nn.Linear(64, 64).cuda()
    opt = torch.optim.SGD(net.parameters(), lr=1e-6)
    began = time.monotonic()
    while time.monotonic() - began < 30:
        for x in torch.utils.data.DataLoader(Rows(), batch_size=16, num_workers=1, pin_memory=True):
            opt.zero_grad()
            loss = net(x.cuda(non_blocking=True)).square().mean()
            loss.backward()
            opt.step()
            loss.item()

if __name__ == "__main__":
    main()
"""


@pytest.fixture(scope="module")
def recording(tmp_path_factory: pytest.TempPathFactory) -> Recording:
    folder = tmp_path_factory.mktemp("bare")
    (folder / "train.py").write_text(PROGRAM)
    command = [sys.executable, "-m", "syncscope", "profile", "--steps", "20", "--stop", "-o", "out", "train.py"]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert (
        "gpu buffer" not in done.stderr.lower()
    )  # Kineto's, of which the steps before a window must not need too many
    found = load(folder / "out" / "trace.json.gz").recording
    assert found is not None
    return found


def test_bare_steps_have_stamps_of_all_that_the_host_does(recording: Recording) -> None:
    bare = recording.bare
    assert bare is not None and len(bare.steps_ns) >= 10
    assert {stamp.event for stamp in bare.stamps} == {"loader", "forward", "backward", "optimizer", "wait"}
    for stamp in bare.stamps:
        assert len(stamp.ends_ns) == len(bare.steps_ns)
        assert all(0 <= end <= length for end, length in zip(stamp.ends_ns, bare.steps_ns, strict=True))


def test_a_loader_that_sets_the_pace_has_nothing_ready_and_an_interval(recording: Recording) -> None:
    assert recording.bare is not None
    loader = recording.bare.loader
    assert loader is not None and (loader.workers, loader.prefetch, loader.pinned, loader.batch_size) == (
        1,
        2,
        True,
        16,
    )
    assert loader.ready == 0 and loader.interval_ns is not None


@pytest.mark.skipif(importlib.util.find_spec("pynvml") is None, reason="needs nvidia-ml-py: it is not installed")
def test_the_gpus_sensors_were_asked_in_both_windows(recording: Recording) -> None:
    gpu = recording.gpu
    assert gpu is not None and gpu.missing is None and gpu.bare is not None and gpu.timed is not None
    assert gpu.power_limit_w is not None and gpu.bare.power_w is not None
    assert 0 < gpu.bare.power_w <= 1.2 * gpu.power_limit_w
    assert gpu.max_sm_clock_mhz is not None and 0 < (gpu.bare.sm_clock_mhz or 0) <= gpu.max_sm_clock_mhz
    assert gpu.bare.samples >= 5  # of a second; where other tests keep all cores busy, our thread gets few turns


def test_what_was_recorded_is_as_long_as_the_bare_steps_or_longer(recording: Recording) -> None:
    assert not [note for note in recording.notes if "too short" in note]
