"""Every step pins its batch before it copies it; the fix pins it once."""

import torch
from models import Fit
from parts import Step, profiled
from torch import nn

SIZES = {"small": (512, 2048), "medium": (4096, 2048)}
FIX = {
    "question": "pinned once",
    "kind": "transform",
    "fresh": True,
    "findings": [("CPY202", "batch.pin_memory()")],
}


def fed(once: bool, rows: int, width: int) -> Step:
    torch.manual_seed(0)
    fit = Fit(nn.Sequential(nn.Linear(width, width), nn.ReLU(), nn.Linear(width, 16)))
    batch = torch.linspace(-1, 1, rows * width).reshape(rows, width)
    pinned = batch.pin_memory()

    def step():
        source = pinned if once else batch.pin_memory()
        loss = fit.model(source.to("cuda", non_blocking=True)).square().mean()
        fit.update(loss)
        return loss.detach()

    return step


def before(rows: int, width: int) -> Step:
    return fed(False, rows, width)


def after(rows: int, width: int) -> Step:
    return fed(True, rows, width)


if __name__ == "__main__":
    profiled(before, SIZES)
