"""Each layer of a small step is timed with a wait. The fix times nothing."""

from __future__ import annotations

import time

import torch
from models import Fit
from parts import Step, profiled
from torch import nn

SIZES = {"small": (64, 256, 12), "medium": (2048, 1024, 12)}
FIX = {
    "question": "all waits removed",
    "kind": "wait",
    "fresh": True,
    "newest": True,
    "contact": 3,
    "findings": [("SYN", "torch.cuda.synchronize()")],
}


def timed(wait: bool, batch: int, width: int, depth: int) -> Step:
    torch.manual_seed(0)
    fit, times = Fit(nn.ModuleList(nn.Linear(width, width) for _ in range(depth))), []
    inputs = torch.linspace(-1, 1, batch * width, device="cuda").reshape(batch, width)

    def step():
        times.clear()
        hidden = inputs
        for layer in fit.model:
            begin = time.perf_counter()
            hidden = layer(hidden).relu()
            if wait:
                torch.cuda.synchronize()
            times.append(time.perf_counter() - begin)
        loss = hidden.square().mean()
        fit.update(loss)
        return loss.detach()

    return step


def before(batch: int, width: int, depth: int) -> Step:
    return timed(True, batch, width, depth)


def after(batch: int, width: int, depth: int) -> Step:
    return timed(False, batch, width, depth)


if __name__ == "__main__":
    profiled(before, SIZES)
