"""Two heads of a large TF32 step share a body, and the loss of each is read. The fix keeps both on the device."""

from __future__ import annotations

import torch
from heavy import allow_tf32, mlp
from models import Fit
from parts import Step, collate, profiled
from torch import nn

SIZES = {"heavy": (8192, 4096, 3, 4500), "light": (16384, 4096, 3, 4500)}
FIX = {
    "question": "all waits removed",
    "kind": "wait",
    "fresh": True,
    "newest": True,
    "contact": 3,
    "settle_ms": 300,
    "limited": True,
    "findings": [("SYN", "loss.item()")],
}


class Heads(nn.Module):
    def __init__(self, width: int, depth: int) -> None:
        super().__init__()
        self.body = mlp(width, depth)
        self.left, self.right = nn.Linear(16, 16), nn.Linear(16, 16)

    def forward(self, inputs: torch.Tensor) -> list[torch.Tensor]:
        shared = self.body(inputs)
        return [self.left(shared).square().mean(), self.right(shared).abs().mean()]


def read_twice(read: bool, batch: int, width: int, depth: int, work: int) -> Step:
    allow_tf32()
    fit, shown = Fit(Heads(width, depth)), []
    inputs = torch.linspace(-1, 1, batch * width, device="cuda").reshape(batch, width)

    def step():
        losses = fit.model(inputs)
        fit.update(sum(losses))
        shown[:] = [loss.item() if read else loss.detach() for loss in losses]
        collate(work)
        return losses[0].detach()

    return step


def before(batch: int, width: int, depth: int, work: int) -> Step:
    return read_twice(True, batch, width, depth, work)


def after(batch: int, width: int, depth: int, work: int) -> Step:
    return read_twice(False, batch, width, depth, work)


if __name__ == "__main__":
    profiled(before, SIZES)
