"""A large step in bfloat16 is left out where the norm of its gradients is not finite. The fix never looks."""

from __future__ import annotations

import torch
from heavy import LowPrecision, mlp, rows
from parts import Step, collate, profiled

SIZES = {"heavy": (8192, 4096, 7, 6000), "light": (8192, 4096, 10, 4000)}
FIX = {
    "question": "wait removed",
    "kind": "wait",
    "fresh": True,
    "newest": True,
    "contact": 5,
    "settle_ms": 150,
    "limited": True,
    "findings": [("SYN", "norm.isfinite()")],
}


def guarded(look: bool, batch: int, width: int, depth: int, work: int) -> Step:
    fit, inputs = LowPrecision(mlp(width, depth)), rows(batch, width)

    def step():
        fit.optimizer.zero_grad()
        loss = fit.model(inputs).float().square().mean()
        loss.backward()
        norm = torch.nn.utils.get_total_norm([weight.grad for weight in fit.parameters])
        if not look or norm.isfinite():
            fit.optimizer.step()
        collate(work)
        return loss.detach()

    return step


def before(batch: int, width: int, depth: int, work: int) -> Step:
    return guarded(True, batch, width, depth, work)


def after(batch: int, width: int, depth: int, work: int) -> Step:
    return guarded(False, batch, width, depth, work)


if __name__ == "__main__":
    profiled(before, SIZES)
