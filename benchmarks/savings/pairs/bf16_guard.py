"""A step is left out where its loss is not finite. The fix does not look."""

from __future__ import annotations

import torch
from heavy import LowPrecision, mlp, rows
from parts import Step, profiled

SIZES = {"heavy": (8192, 4096, 10)}
FIX = {
    "question": "all waits removed",
    "kind": "wait",
    "fresh": True,
    "newest": True,
    "settle_ms": 250,
    "limited": True,
    "findings": [
        ("SYN", "torch.isfinite(loss)"),
    ],
}


def guarded(look: bool, batch: int, width: int, depth: int) -> Step:
    fit, inputs = LowPrecision(mlp(width, depth)), rows(batch, width)

    def step():
        loss = fit.model(inputs).square().mean()
        if not look or torch.isfinite(loss):
            fit.update(loss)
        return loss.detach()

    return step


def before(batch: int, width: int, depth: int) -> Step:
    return guarded(True, batch, width, depth)


def after(batch: int, width: int, depth: int) -> Step:
    return guarded(False, batch, width, depth)


if __name__ == "__main__":
    profiled(before, SIZES)
