"""Each gradient of a small step is checked before the update. The fix checks nothing."""

from __future__ import annotations

import torch
from models import Fit
from parts import Step, profiled
from torch import nn

SIZES = {"small": (32, 256, 6), "deep": (64, 256, 20)}
FIX = {
    "question": "all waits removed",
    "kind": "wait",
    "fresh": True,
    "newest": True,
    "contact": 3,
    "findings": [("SYN", "torch.isfinite(weight.grad).all()")],
}


def checked(check: bool, batch: int, width: int, depth: int) -> Step:
    torch.manual_seed(0)
    layers = [layer for _ in range(depth) for layer in (nn.Linear(width, width), nn.ReLU())]
    fit = Fit(nn.Sequential(*layers))
    inputs = torch.linspace(-1, 1, batch * width, device="cuda").reshape(batch, width)

    def step():
        fit.optimizer.zero_grad()
        loss = fit.model(inputs).square().mean()
        loss.backward()
        if check:
            for weight in fit.parameters:
                if not torch.isfinite(weight.grad).all():
                    raise FloatingPointError
        fit.optimizer.step()
        return loss.detach()

    return step


def before(batch: int, width: int, depth: int) -> Step:
    return checked(True, batch, width, depth)


def after(batch: int, width: int, depth: int) -> Step:
    return checked(False, batch, width, depth)


if __name__ == "__main__":
    profiled(before, SIZES)
