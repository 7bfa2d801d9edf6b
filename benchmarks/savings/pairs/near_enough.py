"""A layer looks after each round whether its fixed point is near. The fix does all rounds without a look."""

from __future__ import annotations

import torch
from models import Fit
from parts import Step, collate, profiled
from torch import nn

SIZES = {"small": (64, 128, 12, 0), "large": (8192, 1024, 12, 1500)}
FIX = {
    "question": "all waits removed",
    "kind": "wait",
    "fresh": True,
    "newest": True,
    "contact": 7,
    "written": "2026-11-26, before any run",
    "findings": [("SYN", "torch.allclose(")],
}


class Solved(nn.Module):
    def __init__(self, look: bool, width: int, rounds: int) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.mix, self.look, self.rounds = nn.Linear(width, width), look, rounds

    def forward(self, given: torch.Tensor) -> torch.Tensor:
        found = torch.zeros_like(given)
        for number in range(self.rounds):
            last, found = found, torch.tanh(self.mix(found) + given + (0.5 if number % 2 else -0.5))
            if self.look and torch.allclose(found, last, atol=1e-6):
                break
        return found


def solved(look: bool, batch: int, width: int, rounds: int, work: int) -> Step:
    fit = Fit(Solved(look, width, rounds))
    given = torch.linspace(-1, 1, batch * width, device="cuda").reshape(batch, width)

    def step():
        loss = fit.model(given).square().mean()
        fit.update(loss)
        collate(work)
        return loss.detach()

    return step


def before(batch: int, width: int, rounds: int, work: int) -> Step:
    return solved(True, batch, width, rounds, work)


def after(batch: int, width: int, rounds: int, work: int) -> Step:
    return solved(False, batch, width, rounds, work)


if __name__ == "__main__":
    profiled(before, SIZES)
