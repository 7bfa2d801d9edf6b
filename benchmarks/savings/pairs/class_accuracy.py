"""How many of each class are right is read class by class. The fix keeps the counts on the device."""

from __future__ import annotations

import torch
from models import Fit
from parts import Step, profiled
from torch import nn

SIZES = {"ten": (256, 256, 10), "forty": (256, 256, 40)}
FIX = {
    "question": "all waits removed",
    "kind": "wait",
    "fresh": True,
    "newest": True,
    "contact": 5,
    "findings": [("SYN", "hits.item()")],
}


def counted(read: bool, batch: int, width: int, classes: int) -> Step:
    torch.manual_seed(0)
    fit = Fit(
        nn.Sequential(nn.Linear(width, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU(), nn.Linear(width, classes))
    )
    inputs = torch.linspace(-1, 1, batch * width, device="cuda").reshape(batch, width)
    labels, counts = torch.arange(batch, device="cuda") % classes, []

    def step():
        scores = fit.model(inputs)
        loss = nn.functional.cross_entropy(scores, labels)
        fit.update(loss)
        right = scores.detach().argmax(1) == labels
        counts.clear()
        for number in range(classes):
            hits = (right & (labels == number)).sum()
            counts.append(hits.item() if read else hits)
        return loss.detach()

    return step


def before(batch: int, width: int, classes: int) -> Step:
    return counted(True, batch, width, classes)


def after(batch: int, width: int, classes: int) -> Step:
    return counted(False, batch, width, classes)


if __name__ == "__main__":
    profiled(before, SIZES)
