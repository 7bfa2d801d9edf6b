"""The host makes each batch itself. The fix has two workers do it."""

from __future__ import annotations

import torch
from feeding import batches
from models import Fit
from parts import Step, profiled
from torch import nn

SIZES = {"slow": (64, 1024, 60)}
FIX = {
    "question": "more workers",
    "kind": "transform",
    "fresh": True,
    "newest": True,
    "asked": "two workers",
    "settle_ms": 150,
    "findings": [("OVL303", "")],
}


def fed(workers: int, batch: int, width: int, cost: int) -> Step:
    torch.manual_seed(0)
    layers = [layer for _ in range(6) for layer in (nn.Linear(width, width), nn.ReLU())]
    fit, coming = Fit(nn.Sequential(*layers)), batches(batch, width, cost, workers)

    def step():
        loss = fit.model(next(coming).to("cuda", non_blocking=True)).square().mean()
        fit.update(loss)
        return loss.detach()

    return step


def before(batch: int, width: int, cost: int) -> Step:
    return fed(0, batch, width, cost)


def after(batch: int, width: int, cost: int) -> Step:
    return fed(2, batch, width, cost)


if __name__ == "__main__":
    profiled(before, SIZES)
