"""What the pairs are made of: a small model in training, host work, and the loop that is profiled."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable
from typing import Any

import torch
import torch.distributed as dist
from torch import nn

import syncscope

Step = Callable[[], Any]
"""One step; what it returns is the same before and after the fix."""

STEPS = 32
"""Enough for the warm-up and every window of a recording, where it cannot end the program."""
SECONDS = 30.0
"""The longest that a program runs whose recording ends it."""


class Training:
    """Two layers and a head, their data and their optimizer. ``batch`` decides how busy the device is."""

    def __init__(self, batch: int, width: int) -> None:
        torch.manual_seed(0)
        self.body = nn.Sequential(nn.Linear(width, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU()).to("cuda")
        self.head = nn.Linear(width, 10).to("cuda")
        self.parameters = [*self.body.parameters(), *self.head.parameters()]
        self.optimizer = torch.optim.SGD(self.parameters, lr=1e-3)
        self.inputs = torch.randn(batch, width, device="cuda")
        self.targets = torch.arange(batch, device="cuda") % 10

    def forward(self, inputs: torch.Tensor | None = None) -> torch.Tensor:
        """The loss, with gradients of the step before cleared."""
        self.optimizer.zero_grad()
        logits = self.head(self.body(self.inputs if inputs is None else inputs))
        return nn.functional.cross_entropy(logits, self.targets)

    def backward(self, loss: torch.Tensor) -> None:
        loss.backward()
        self.optimizer.step()


def joined() -> int:
    """This process's rank among all that run the program, each with a device of its own."""
    rank = int(os.environ["RANK"])
    torch.cuda.set_device(rank)
    if not dist.is_initialized():
        dist.init_process_group("nccl" if torch.cuda.is_available() else "gloo")
    return rank


def collate(rows: int) -> int:
    """Host work without PyTorch, a fraction of a microsecond a row."""
    return sum(hash(str(row)) % 7 + len(f"{row:x}") for row in range(rows))


def profiled(before: Callable[..., Step], sizes: dict[str, tuple[int, ...]]) -> None:
    """The program that is profiled: the version before the fix in a loop, at the size named on the command line."""
    step = before(*sizes[sys.argv[1]])
    alone = int(os.environ.get("WORLD_SIZE", "1")) == 1
    begin = time.monotonic()
    done = 0
    while done < STEPS or (alone and time.monotonic() < begin + SECONDS):
        step()
        syncscope.step()
        done += 1
    if dist.is_available() and dist.is_initialized():
        torch.cuda.synchronize()
        dist.destroy_process_group()
