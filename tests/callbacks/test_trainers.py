"""The callbacks in real trainers, on the CPU. Each runs in a process of its own: trainers warn of many things."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

SPY = """
def spied(callback):
    seen, stepped = [], callback._training.stepped
    begun, begin = [], callback._training.begin
    callback._training.stepped = lambda step: (seen.append(step), stepped(step))
    callback._training.begin = lambda step: (begun.append(step), begin(step))
    return callback, begun, seen
"""

LIGHTNING = """
import torch, lightning.pytorch as L
from syncscope.callbacks.lightning import SyncscopeCallback
class Net(L.LightningModule):
    def __init__(self):
        super().__init__()
        self.net = torch.nn.Linear(4, 1)
    def training_step(self, batch, index):
        return self.net(batch[0]).sum()
    def validation_step(self, batch, index):
        self.log("loss", self.net(batch[0]).sum())
    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=0.1)
data = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(torch.randn(32, 4)), batch_size=4)
callback, begun, seen = spied(SyncscopeCallback("out"))
L.Trainer(
    max_epochs=2, accelerator="cpu", callbacks=[callback], logger=False, enable_checkpointing=False,
    enable_progress_bar=False, enable_model_summary=False, accumulate_grad_batches=2,
).fit(Net(), data, data)
print(begun, sorted(set(seen)), callback._training.watching)
"""

TRANSFORMERS = """
import torch
from transformers import Trainer, TrainingArguments
from syncscope.callbacks.transformers import SyncscopeCallback
class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.net = torch.nn.Linear(4, 1)
    def forward(self, x, labels=None):
        y = self.net(x)
        return {"loss": ((y - labels) ** 2).mean(), "logits": y}
data = [{"x": torch.randn(4), "labels": torch.randn(1)} for _ in range(32)]
callback, begun, seen = spied(SyncscopeCallback("out"))
arguments = TrainingArguments(
    "model", num_train_epochs=2, per_device_train_batch_size=4, gradient_accumulation_steps=2, use_cpu=True,
    report_to=[], save_strategy="no", eval_strategy="epoch", disable_tqdm=True,
)
Trainer(Net(), arguments, train_dataset=data, eval_dataset=data, callbacks=[callback]).train()
print(begun, sorted(set(seen)), callback._training.watching)
"""


@pytest.mark.parametrize(("package", "program"), [("lightning", LIGHTNING), ("transformers", TRANSFORMERS)])
def test_the_trainers_steps_are_told_and_validation_is_not(package: str, program: str, tmp_path: Path) -> None:
    for needed in ("torch", package, *(["accelerate"] if package == "transformers" else [])):
        if importlib.util.find_spec(needed) is None:
            pytest.skip(f"needs {needed}, which is not installed")
    paths = os.pathsep.join([str(ROOT), *sys.path])
    environment = {**os.environ, "PYTHONPATH": paths, "HF_HUB_OFFLINE": "1"}
    found = subprocess.run(
        [sys.executable, "-c", SPY + program],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert found.returncode == 0, found.stderr
    begun = "[0] "
    steps = [*range(1, 9)] if package == "transformers" else [*range(9)]
    assert found.stdout.splitlines()[-1] == f"{begun}{steps} None"
