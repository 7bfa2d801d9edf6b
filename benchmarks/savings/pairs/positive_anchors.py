"""The anchors that hold an object are looked up level by level. The fix weighs the others with 0."""

from __future__ import annotations

import torch
from models import Fit
from parts import Step, profiled
from torch import nn

SIZES = {"hosted": (256, 128, 5), "medium": (16384, 1024, 5)}
FIX = {
    "question": "all waits removed",
    "kind": "wait",
    "fresh": True,
    "newest": True,
    "contact": 5,
    "findings": [("SYN", "positive.nonzero()")],
}


def matched(pick: bool, batch: int, width: int, levels: int) -> Step:
    torch.manual_seed(0)
    fit = Fit(nn.ModuleList(nn.Linear(width, width) for _ in range(levels)))
    inputs = torch.linspace(-1, 1, batch * width, device="cuda").reshape(batch, width)
    anchors = torch.arange(batch, device="cuda") % 16

    def step():
        hidden, total = inputs, torch.zeros((), device="cuda")
        for level, layer in enumerate(fit.model):
            hidden = layer(hidden).relu()
            losses, positive = hidden.square().mean(1), anchors <= level
            picked = losses[positive.nonzero().squeeze(1)] if pick else losses * positive
            total = total + picked.sum() / batch
        fit.update(total)
        return batch

    return step


def before(batch: int, width: int, levels: int) -> Step:
    return matched(True, batch, width, levels)


def after(batch: int, width: int, levels: int) -> Step:
    return matched(False, batch, width, levels)


if __name__ == "__main__":
    profiled(before, SIZES)
