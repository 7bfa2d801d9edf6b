"""Each layer of a large TF32 step asks whether any row is padding. The fix asks nobody."""

from __future__ import annotations

import torch
from heavy import allow_tf32, mlp
from models import Fit
from parts import Step, profiled

SIZES = {"wide": (8192, 4096, 6), "deep": (4096, 4096, 14)}
FIX = {
    "question": "all waits removed",
    "kind": "wait",
    "fresh": True,
    "newest": True,
    "contact": 2,
    "settle_ms": 300,
    "limited": True,
    "findings": [("SYN", "padding.any()")],
}


def checked(ask: bool, batch: int, width: int, depth: int) -> Step:
    allow_tf32()
    fit = Fit(mlp(width, depth))
    inputs = torch.linspace(-1, 1, batch * width, device="cuda").reshape(batch, width)
    padding = torch.zeros(batch, 1, dtype=torch.bool, device="cuda")

    def step():
        values = inputs
        for layer in fit.model:
            values = layer(values)
            if ask and padding.any():
                values = values.masked_fill(padding, 0)
        loss = values.square().mean()
        fit.update(loss)
        return loss.detach()

    return step


def before(batch: int, width: int, depth: int) -> Step:
    return checked(True, batch, width, depth)


def after(batch: int, width: int, depth: int) -> Step:
    return checked(False, batch, width, depth)


if __name__ == "__main__":
    profiled(before, SIZES)
