"""A large TF32 step reads the rate that a schedule keeps on the device. The fix does not read it."""

from __future__ import annotations

import torch
from heavy import allow_tf32, mlp
from models import Fit
from parts import Step, collate, profiled

SIZES = {"heavy": (8192, 4096, 5, 5000), "light": (8192, 4096, 8, 4000)}
FIX = {
    "question": "wait removed",
    "kind": "wait",
    "fresh": True,
    "newest": True,
    "contact": 5,
    "settle_ms": 150,
    "limited": True,
    "findings": [("SYN", "rate.item()")],
}


def scheduled(read: bool, batch: int, width: int, depth: int, work: int) -> Step:
    allow_tf32()
    fit, rate, shown = Fit(mlp(width, depth)), torch.ones((), device="cuda"), []
    inputs = torch.linspace(-1, 1, batch * width, device="cuda").reshape(batch, width)

    def step():
        loss = fit.model(inputs).square().mean() * rate
        fit.update(loss)
        rate.mul_(0.9999)
        shown[:] = [rate.item() if read else rate]
        collate(work)
        return loss.detach()

    return step


def before(batch: int, width: int, depth: int, work: int) -> Step:
    return scheduled(True, batch, width, depth, work)


def after(batch: int, width: int, depth: int, work: int) -> Step:
    return scheduled(False, batch, width, depth, work)


if __name__ == "__main__":
    profiled(before, SIZES)
