"""The mean of each activation is read as it comes. The fix keeps the means on the device."""

from __future__ import annotations

import torch
from heavy import allow_tf32, mlp
from models import Fit
from parts import Step, profiled

SIZES = {"deep": (8192, 4096, 8)}
FIX = {
    "question": "all waits removed",
    "kind": "wait",
    "fresh": True,
    "newest": True,
    "contact": 1,
    "settle_ms": 250,
    "limited": True,
    "findings": [
        ("SYN", "mean.item()"),
    ],
}


def watched(read: bool, batch: int, width: int, depth: int) -> Step:
    allow_tf32()
    fit, means = Fit(mlp(width, depth)), []
    inputs = torch.linspace(-1, 1, batch * width, device="cuda").reshape(batch, width)

    def step():
        means.clear()
        values = inputs
        for layer in fit.model:
            values = layer(values)
            mean = values.detach().mean()
            means.append(mean.item() if read else mean)
        loss = values.square().mean()
        fit.update(loss)
        return loss.detach()

    return step


def before(batch: int, width: int, depth: int) -> Step:
    return watched(True, batch, width, depth)


def after(batch: int, width: int, depth: int) -> Step:
    return watched(False, batch, width, depth)


if __name__ == "__main__":
    profiled(before, SIZES)
