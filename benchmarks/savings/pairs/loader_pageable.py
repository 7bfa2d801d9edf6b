"""A loader hands out pageable batches, whose copies wait; the fix has them pinned and copied asynchronously."""

import torch
from feeding import batches
from models import Fit
from parts import Step, profiled
from torch import nn

SIZES = {"medium": (256, 2048, 1, 2), "large": (128, 8192, 1, 3)}
FIX = {
    "question": "pinned and asynchronous",
    "kind": "transform",
    "fresh": True,
    "settle_ms": 250,
    "findings": [("CPY201", "next(loader).to("), ("SYN101", "next(loader).to(")],
}


def fed(pinned: bool, batch: int, width: int, cost: int, workers: int) -> Step:
    torch.manual_seed(0)
    fit = Fit(nn.Sequential(nn.Linear(width, width), nn.ReLU(), nn.Linear(width, 16)))
    loader = batches(batch, width, cost, workers, pinned=pinned)

    def step():
        inputs = next(loader).to("cuda", non_blocking=pinned)
        loss = fit.model(inputs).square().mean()
        fit.update(loss)
        return loss.detach()

    return step


def before(batch: int, width: int, cost: int, workers: int) -> Step:
    return fed(False, batch, width, cost, workers)


def after(batch: int, width: int, cost: int, workers: int) -> Step:
    return fed(True, batch, width, cost, workers)


if __name__ == "__main__":
    profiled(before, SIZES)
