"""Noise of learned strength is drawn by ``torch.normal``, which checks it. The fix scales standard noise."""

from __future__ import annotations

import torch
from models import Fit
from parts import Step, profiled
from torch import nn

SIZES = {"few": (64, 128, 6), "large": (16384, 1024, 4)}
FIX = {
    "question": "all waits removed",
    "kind": "wait",
    "fresh": True,
    "newest": True,
    "contact": 7,
    "written": "2026-11-26, before any run",
    "findings": [("SYN", "torch.normal(")],
}


def noised(check: bool, batch: int, width: int, levels: int) -> Step:
    torch.manual_seed(0)
    fit = Fit(nn.ModuleList(nn.Linear(width, 2 * width) for _ in range(levels)))
    inputs = torch.linspace(-1, 1, batch * width, device="cuda").reshape(batch, width)

    def step():
        hidden = inputs
        for level in fit.model:
            mean, spread = level(hidden).chunk(2, dim=1)
            with torch.no_grad():
                strength = nn.functional.softplus(spread)
                if check:
                    noise = torch.normal(torch.zeros_like(strength), strength)
                else:
                    noise = strength * torch.randn_like(strength)
            hidden = (mean + noise).tanh() + 0.1 * spread
        fit.update(hidden.square().mean())
        return batch

    return step


def before(batch: int, width: int, levels: int) -> Step:
    return noised(True, batch, width, levels)


def after(batch: int, width: int, levels: int) -> Step:
    return noised(False, batch, width, levels)


if __name__ == "__main__":
    profiled(before, SIZES)
