"""A small step reads the mean of what each layer gives. The fix keeps the means on the device."""

from __future__ import annotations

import torch
from models import Fit
from parts import Step, profiled
from torch import nn

SIZES = {"small": (32, 256, 12), "deep": (64, 256, 32)}
FIX = {
    "question": "all waits removed",
    "kind": "wait",
    "fresh": True,
    "newest": True,
    "contact": 3,
    "findings": [("SYN", "mean.item()")],
}


def watched(read: bool, batch: int, width: int, depth: int) -> Step:
    torch.manual_seed(0)
    fit, means = Fit(nn.ModuleList(nn.Linear(width, width) for _ in range(depth))), []
    inputs = torch.linspace(-1, 1, batch * width, device="cuda").reshape(batch, width)

    def step():
        means.clear()
        hidden = inputs
        for layer in fit.model:
            hidden = layer(hidden).relu()
            mean = hidden.detach().mean()
            means.append(mean.item() if read else mean)
        loss = hidden.square().mean()
        fit.update(loss)
        return loss.detach()

    return step


def before(batch: int, width: int, depth: int) -> Step:
    return watched(True, batch, width, depth)


def after(batch: int, width: int, depth: int) -> Step:
    return watched(False, batch, width, depth)


if __name__ == "__main__":
    profiled(before, SIZES)
