"""Padded rows are taken out of the loss of a large step by a mask. The fix weighs them with 0."""

from __future__ import annotations

import torch
from heavy import LowPrecision, mlp, rows
from parts import Step, collate, profiled

SIZES = {"light": (8192, 4096, 8, 1000), "heavy": (8192, 4096, 5, 4000)}
FIX = {
    "question": "wait removed",
    "kind": "wait",
    "fresh": True,
    "newest": True,
    "contact": 1,
    "settle_ms": 250,
    "limited": True,
    "findings": [("SYN103", "losses[real]")],
}


def masked(pick: bool, batch: int, width: int, depth: int, work: int) -> Step:
    fit, inputs = LowPrecision(mlp(width, depth)), rows(batch, width)
    real = torch.arange(batch, device="cuda") % 8 > 0

    def step():
        losses = fit.model(inputs).float().square().mean(1)
        total = losses[real].sum() if pick else torch.where(real, losses, 0).sum()
        fit.update(total / real.sum())
        collate(work)
        return real.sum()

    return step


def before(batch: int, width: int, depth: int, work: int) -> Step:
    return masked(True, batch, width, depth, work)


def after(batch: int, width: int, depth: int, work: int) -> Step:
    return masked(False, batch, width, depth, work)


if __name__ == "__main__":
    profiled(before, SIZES)
