"""Both losses of an autoencoder go into a line of text each step. The fix writes one line in a million."""

from __future__ import annotations

import itertools

import torch
from parts import Step, profiled
from torch import nn

SIZES = {"small": (64, 256, 16)}
FIX = {
    "question": "all waits removed",
    "kind": "wait",
    "fresh": True,
    "newest": True,
    "contact": 9,
    "written": "2026-11-28, before any run",
    "findings": [
        ("SYN", "rebuilt.item()"),
        ("SYN", "spread.item()"),
    ],
}
RARELY = 1_000_000


class Coder(nn.Module):
    def __init__(self, values: int, codes: int) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.into = nn.Sequential(nn.Linear(values, values), nn.Tanh(), nn.Linear(values, 2 * codes))
        self.back = nn.Sequential(nn.Linear(codes, values), nn.Tanh(), nn.Linear(values, values))

    def forward(self, given: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        mean, strength = self.into(given).chunk(2, dim=1)
        code = mean + torch.randn_like(mean) * (strength / 2).exp()
        rebuilt = nn.functional.binary_cross_entropy_with_logits(self.back(code), given)
        return rebuilt, (mean.square() + strength.exp() - strength - 1).mean() / 2


def coded(often: bool, batch: int, values: int, codes: int) -> Step:
    model, lines = Coder(values, codes).to("cuda"), [""]
    optimizer = torch.optim.RMSprop(model.parameters(), lr=1e-4)
    given = torch.linspace(0, 1, batch * values, device="cuda").reshape(batch, values)
    count, every = itertools.count(1), 1 if often else RARELY

    def step():
        rebuilt, spread = model(given)
        optimizer.zero_grad()
        (rebuilt + 0.1 * spread).backward()
        optimizer.step()
        number = next(count)
        if number % every == 0:
            lines[0] = f"step {number}: rebuilt {rebuilt.item():.4f}, spread {spread.item():.4f}"
        return rebuilt.detach()

    return step


def before(batch: int, values: int, codes: int) -> Step:
    return coded(True, batch, values, codes)


def after(batch: int, values: int, codes: int) -> Step:
    return coded(False, batch, values, codes)


if __name__ == "__main__":
    profiled(before, SIZES)
