"""The norm of the gradients of a large TF32 step is read before the update. The fix keeps it on the device."""

from __future__ import annotations

import torch
from heavy import allow_tf32, mlp
from models import Fit
from parts import Step, collate, profiled

SIZES = {"light": (8192, 4096, 5, 1000), "heavy": (8192, 4096, 3, 5000)}
FIX = {
    "question": "wait removed",
    "kind": "wait",
    "fresh": True,
    "newest": True,
    "contact": 1,
    "settle_ms": 250,
    "limited": True,
    "findings": [("SYN", "norm.item()")],
}


def normed(read: bool, batch: int, width: int, depth: int, work: int) -> Step:
    allow_tf32()
    fit, norms = Fit(mlp(width, depth)), []
    inputs = torch.linspace(-1, 1, batch * width, device="cuda").reshape(batch, width)

    def step():
        collate(work)
        loss = fit.model(inputs).square().mean()
        fit.optimizer.zero_grad()
        loss.backward()
        norm = torch.nn.utils.clip_grad_norm_(fit.parameters, 1.0)
        norms[:] = [norm.item() if read else norm]
        fit.optimizer.step()
        return loss.detach()

    return step


def before(batch: int, width: int, depth: int, work: int) -> Step:
    return normed(True, batch, width, depth, work)


def after(batch: int, width: int, depth: int, work: int) -> Step:
    return normed(False, batch, width, depth, work)


if __name__ == "__main__":
    profiled(before, SIZES)
