"""Each task of a step prints its loss as it comes. The fix keeps the losses on the device."""

from __future__ import annotations

import os

import torch
from models import Fit
from parts import Step, profiled
from torch import nn

SIZES = {"some": (64, 128, 6), "many": (64, 128, 24)}
FIX = {
    "question": "all waits removed",
    "kind": "wait",
    "fresh": True,
    "newest": True,
    "contact": 5,
    "findings": [("SYN", "loss.item()")],
}


def told(show: bool, batch: int, width: int, tasks: int) -> Step:
    torch.manual_seed(0)
    fit, kept = Fit(nn.ModuleList(nn.Linear(width, 10) for _ in range(tasks))), []
    inputs = torch.linspace(-1, 1, batch * width, device="cuda").reshape(batch, width)
    labels, log = torch.arange(batch, device="cuda") % 10, open(os.devnull, "w")  # noqa: SIM115

    def step():
        total = torch.zeros((), device="cuda")
        kept.clear()
        for number, task in enumerate(fit.model):
            loss = nn.functional.cross_entropy(task(inputs), labels)
            total = total + loss
            if show:
                print(f"task {number}: {loss.item():.4f}", file=log)
            else:
                kept.append(loss.detach())
        fit.update(total)
        return total.detach()

    return step


def before(batch: int, width: int, tasks: int) -> Step:
    return told(True, batch, width, tasks)


def after(batch: int, width: int, tasks: int) -> Step:
    return told(False, batch, width, tasks)


if __name__ == "__main__":
    profiled(before, SIZES)
