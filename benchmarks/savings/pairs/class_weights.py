"""Each of several heads makes the weights of its classes anew in each step. The fix makes them once."""

from __future__ import annotations

import torch
from models import Fit
from parts import Step, profiled
from torch import nn

SIZES = {"small": (64, 128, 8)}
FIX = {
    "question": "copies gone",
    "kind": "transform",
    "fresh": True,
    "newest": True,
    "contact": 3,
    "findings": [("SYN", 'torch.tensor(weights, device="cuda")'), ("CPY2", 'torch.tensor(weights, device="cuda")')],
}


def weighted(anew: bool, batch: int, width: int, heads: int) -> Step:
    torch.manual_seed(0)
    fit = Fit(nn.ModuleList(nn.Linear(width, 10) for _ in range(heads)))
    inputs = torch.linspace(-1, 1, batch * width, device="cuda").reshape(batch, width)
    labels, weights = torch.arange(batch, device="cuda") % 10, [1.0 + number / 10 for number in range(10)]
    kept = torch.tensor(weights, device="cuda")

    def step():
        loss = torch.zeros((), device="cuda")
        for head in fit.model:
            weight = torch.tensor(weights, device="cuda") if anew else kept
            loss = loss + nn.functional.cross_entropy(head(inputs), labels, weight=weight)
        fit.update(loss)
        return loss.detach()

    return step


def before(batch: int, width: int, heads: int) -> Step:
    return weighted(True, batch, width, heads)


def after(batch: int, width: int, heads: int) -> Step:
    return weighted(False, batch, width, heads)


if __name__ == "__main__":
    profiled(before, SIZES)
