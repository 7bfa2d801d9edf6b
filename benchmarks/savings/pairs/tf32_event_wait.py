"""The host waits for an event after the forward of a large TF32 step. The fix lets it run ahead."""

from __future__ import annotations

import torch
from heavy import allow_tf32, mlp
from models import Fit
from parts import Step, collate, profiled

SIZES = {"light": (8192, 4096, 4, 1500)}
FIX = {
    "question": "wait removed",
    "kind": "wait",
    "fresh": True,
    "newest": True,
    "contact": 2,
    "settle_ms": 300,
    "limited": True,
    "findings": [("SYN105", "forwarded.synchronize()")],
}


def awaited(wait: bool, batch: int, width: int, depth: int, work: int) -> Step:
    allow_tf32()
    fit, forwarded = Fit(mlp(width, depth)), torch.cuda.Event()
    inputs = torch.linspace(-1, 1, batch * width, device="cuda").reshape(batch, width)

    def step():
        loss = fit.model(inputs).square().mean()
        forwarded.record()
        if wait:
            forwarded.synchronize()
        collate(work)
        fit.update(loss)
        return loss.detach()

    return step


def before(batch: int, width: int, depth: int, work: int) -> Step:
    return awaited(True, batch, width, depth, work)


def after(batch: int, width: int, depth: int, work: int) -> Step:
    return awaited(False, batch, width, depth, work)


if __name__ == "__main__":
    profiled(before, SIZES)
