"""Two large towers in bfloat16 learn to agree, and their temperature is read each step. The fix reads none."""

from __future__ import annotations

import torch
from heavy import LowPrecision, mlp, rows
from parts import Step, collate, profiled
from torch import nn

SIZES = {"heavy": (8192, 4096, 2, 5000), "light": (8192, 4096, 3, 2500)}
FIX = {
    "question": "wait removed",
    "kind": "wait",
    "fresh": True,
    "newest": True,
    "contact": 9,
    "written": "2026-11-28, before any run",
    "settle_ms": 300,
    "limited": True,
    "findings": [("SYN", "sharpness.exp().item()")],
}


class Towers(nn.Module):
    def __init__(self, width: int, depth: int) -> None:
        super().__init__()
        self.one, self.other = mlp(width, depth)[:-1], mlp(width, depth)[:-1]
        self.sharpness = nn.Parameter(torch.zeros(()))

    def forward(self, one: torch.Tensor, other: torch.Tensor) -> torch.Tensor:
        one, other = (nn.functional.normalize(part, dim=1) for part in (self.one(one), self.other(other)))
        return one @ other.t() * self.sharpness.exp()


def agreed(read: bool, batch: int, width: int, depth: int, work: int) -> Step:
    fit, inputs = LowPrecision(Towers(width, depth)), rows(batch, width)
    flipped, labels, told = inputs.flip(0), torch.arange(batch, device="cuda"), []
    sharpness = fit.model.sharpness

    def step():
        scores = fit.model(inputs, flipped).float()
        loss = nn.functional.cross_entropy(scores, labels) + nn.functional.cross_entropy(scores.t(), labels)
        fit.update(loss)
        with torch.no_grad():
            told[:] = [sharpness.exp().item() if read else sharpness.exp()]
        collate(work)
        return loss.detach()

    return step


def before(batch: int, width: int, depth: int, work: int) -> Step:
    return agreed(True, batch, width, depth, work)


def after(batch: int, width: int, depth: int, work: int) -> Step:
    return agreed(False, batch, width, depth, work)


if __name__ == "__main__":
    profiled(before, SIZES)
