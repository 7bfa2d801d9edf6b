"""A large TF32 step asks whether its loss is the lowest so far. The fix keeps the lowest on the device."""

from __future__ import annotations

import torch
from heavy import allow_tf32, mlp
from models import Fit
from parts import Step, collate, profiled

SIZES = {"heavy": (8192, 4096, 3, 5000), "light": (8192, 4096, 5, 3000)}
FIX = {
    "question": "wait removed",
    "kind": "wait",
    "fresh": True,
    "newest": True,
    "contact": 3,
    "settle_ms": 300,
    "limited": True,
    "findings": [("SYN", "loss < lowest")],
}


def lowest_kept(branch: bool, batch: int, width: int, depth: int, work: int) -> Step:
    allow_tf32()
    fit, lowest = Fit(mlp(width, depth)), torch.full((), 1e9, device="cuda")
    inputs = torch.linspace(-1, 1, batch * width, device="cuda").reshape(batch, width)

    def step():
        nonlocal lowest
        loss = fit.model(inputs).square().mean()
        fit.update(loss)
        loss = loss.detach()
        if not branch:
            lowest = torch.minimum(loss, lowest)
        elif loss < lowest:
            lowest = loss
        collate(work)
        return lowest

    return step


def before(batch: int, width: int, depth: int, work: int) -> Step:
    return lowest_kept(True, batch, width, depth, work)


def after(batch: int, width: int, depth: int, work: int) -> Step:
    return lowest_kept(False, batch, width, depth, work)


if __name__ == "__main__":
    profiled(before, SIZES)
