"""Targets of each head are made one-hot without saying how many classes there are. The fix says it."""

from __future__ import annotations

import torch
from models import Fit
from parts import Step, profiled
from torch import nn

SIZES = {"few": (64, 128, 6), "many": (64, 256, 20)}
FIX = {
    "question": "all waits removed",
    "kind": "wait",
    "fresh": True,
    "newest": True,
    "contact": 6,
    "findings": [("SYN", "one_hot(labels")],
}
CLASSES = 10


def softened(told: bool, batch: int, width: int, heads: int) -> Step:
    torch.manual_seed(0)
    fit = Fit(nn.ModuleList(nn.Linear(width, CLASSES) for _ in range(heads)))
    inputs = torch.linspace(-1, 1, batch * width, device="cuda").reshape(batch, width)
    labels, classes = torch.arange(batch, device="cuda") % CLASSES, CLASSES if told else -1

    def step():
        total = torch.zeros((), device="cuda")
        for head in fit.model:
            targets = nn.functional.one_hot(labels, classes) * 0.9 + 0.1 / CLASSES
            total = total - (targets * head(inputs).log_softmax(1)).sum(1).mean()
        fit.update(total)
        return total.detach()

    return step


def before(batch: int, width: int, heads: int) -> Step:
    return softened(False, batch, width, heads)


def after(batch: int, width: int, heads: int) -> Step:
    return softened(True, batch, width, heads)


if __name__ == "__main__":
    profiled(before, SIZES)
