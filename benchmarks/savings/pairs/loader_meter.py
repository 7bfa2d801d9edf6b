"""A loss is read in each step of a loop that a loader feeds well. The fix keeps it on the device."""

from __future__ import annotations

import torch
from feeding import batches
from models import Fit
from parts import Step, collate, profiled
from torch import nn

SIZES = {"fed": (64, 1024, 10, 6, 1500)}
FIX = {
    "question": "wait removed",
    "kind": "wait",
    "fresh": True,
    "newest": True,
    "settle_ms": 100,
    "findings": [
        ("SYN", "loss.item()"),
    ],
}


def metered(read: bool, batch: int, width: int, cost: int, workers: int, rows: int) -> Step:
    torch.manual_seed(0)
    layers = [layer for _ in range(8) for layer in (nn.Linear(width, width), nn.ReLU())]
    fit, coming, losses = Fit(nn.Sequential(*layers)), batches(batch, width, cost, workers), []

    def step():
        inputs = next(coming).to("cuda", non_blocking=True)
        collate(rows)
        loss = fit.model(inputs).square().mean()
        fit.update(loss)
        loss = loss.detach()
        losses[:] = [loss.item() if read else loss]
        return loss

    return step


def before(batch: int, width: int, cost: int, workers: int, rows: int) -> Step:
    return metered(True, batch, width, cost, workers, rows)


def after(batch: int, width: int, cost: int, workers: int, rows: int) -> Step:
    return metered(False, batch, width, cost, workers, rows)


if __name__ == "__main__":
    profiled(before, SIZES)
