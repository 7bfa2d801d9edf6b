"""A loss looks at each pair of views whether it is too far apart. The fix clamps at 0 on the device."""

from __future__ import annotations

import torch
from models import Fit
from parts import Step, profiled
from torch import nn

SIZES = {"four": (64, 128, 4), "seven": (64, 128, 7)}
FIX = {
    "question": "all waits removed",
    "kind": "wait",
    "fresh": True,
    "newest": True,
    "contact": 5,
    "findings": [("SYN", "gap > 0")],
}


def compared(look: bool, batch: int, width: int, views: int) -> Step:
    torch.manual_seed(0)
    fit = Fit(nn.ModuleList(nn.Linear(width, width) for _ in range(views)))
    inputs = torch.linspace(-1, 1, batch * width, device="cuda").reshape(batch, width)

    def step():
        seen, total = [view(inputs) for view in fit.model], torch.zeros((), device="cuda")
        for number, one in enumerate(seen):
            for other in seen[:number]:
                gap = (one - other).square().mean() + 0.1
                if not look:
                    total = total + gap.clamp(min=0)
                elif gap > 0:
                    total = total + gap
        fit.update(total)
        return total.detach()

    return step


def before(batch: int, width: int, views: int) -> Step:
    return compared(True, batch, width, views)


def after(batch: int, width: int, views: int) -> Step:
    return compared(False, batch, width, views)


if __name__ == "__main__":
    profiled(before, SIZES)
