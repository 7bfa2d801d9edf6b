"""A large TF32 step gives its memory back each time. The fix keeps it."""

from __future__ import annotations

import torch
from heavy import allow_tf32, mlp
from models import Fit
from parts import Step, profiled

SIZES = {"wide": (8192, 4096, 4), "deep": (4096, 4096, 8)}
FIX = {
    "question": "allocator sync gone",
    "kind": "wait",
    "fresh": True,
    "newest": True,
    "contact": 1,
    "settle_ms": 250,
    "limited": True,
    "findings": [("SYN106", "torch.cuda.empty_cache()")],
}


def emptied(empty: bool, batch: int, width: int, depth: int) -> Step:
    allow_tf32()
    fit = Fit(mlp(width, depth))
    inputs = torch.linspace(-1, 1, batch * width, device="cuda").reshape(batch, width)

    def step():
        loss = fit.model(inputs).square().mean()
        fit.update(loss)
        if empty:
            torch.cuda.empty_cache()
        return loss.detach()

    return step


def before(batch: int, width: int, depth: int) -> Step:
    return emptied(True, batch, width, depth)


def after(batch: int, width: int, depth: int) -> Step:
    return emptied(False, batch, width, depth)


if __name__ == "__main__":
    profiled(before, SIZES)
