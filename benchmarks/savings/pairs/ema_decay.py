"""The decay of a teacher follows a counter on the device. The fix counts on the host."""

from __future__ import annotations

import torch
from models import Fit
from parts import Step, collate, profiled
from torch import nn

SIZES = {"hosted": (64, 256, 8, 500), "medium": (4096, 1024, 8, 3000)}
FIX = {
    "question": "wait removed",
    "kind": "wait",
    "fresh": True,
    "newest": True,
    "contact": 5,
    "findings": [("SYN", "float((1 + seen) / (10 + seen))")],
}


def followed(hosted: bool, batch: int, width: int, depth: int, work: int) -> Step:
    torch.manual_seed(0)
    layers = [layer for _ in range(depth) for layer in (nn.Linear(width, width), nn.ReLU())]
    fit = Fit(nn.Sequential(*layers))
    teacher = [weight.detach().clone() for weight in fit.parameters]
    inputs = torch.linspace(-1, 1, batch * width, device="cuda").reshape(batch, width)
    seen = 0 if hosted else torch.zeros((), device="cuda")

    def step():
        nonlocal seen
        loss = fit.model(inputs).square().mean()
        fit.update(loss)
        seen = seen + 1
        decay = float((1 + seen) / (10 + seen))
        torch._foreach_mul_(teacher, decay)
        torch._foreach_add_(teacher, [weight.detach() for weight in fit.parameters], alpha=1 - decay)
        collate(work)
        return loss.detach()

    return step


def before(batch: int, width: int, depth: int, work: int) -> Step:
    return followed(False, batch, width, depth, work)


def after(batch: int, width: int, depth: int, work: int) -> Step:
    return followed(True, batch, width, depth, work)


if __name__ == "__main__":
    profiled(before, SIZES)
