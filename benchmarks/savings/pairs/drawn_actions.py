"""A policy's actions are a distribution of probabilities that checks what it is given. The fix checks nothing."""

from __future__ import annotations

import torch
from models import Fit
from parts import Step, profiled
from torch import nn
from torch.distributions import Categorical

SIZES = {"small": (64, 128, 3), "large": (16384, 1024, 3)}
FIX = {
    "question": "all waits removed",
    "kind": "wait",
    "fresh": True,
    "newest": True,
    "contact": 7,
    "written": "2026-11-26, before any run",
    "findings": [("SYN", "Categorical("), ("SYN", "log_prob(actions)")],
}
ACTIONS = 8


def acted(check: bool, batch: int, width: int, depth: int) -> Step:
    torch.manual_seed(0)
    layers = [layer for _ in range(depth) for layer in (nn.Linear(width, width), nn.Tanh())]
    fit = Fit(nn.Sequential(*layers, nn.Linear(width, ACTIONS), nn.Softmax(dim=1)))
    seen = torch.linspace(-1, 1, batch * width, device="cuda").reshape(batch, width)
    actions, gain = torch.arange(batch, device="cuda") % ACTIONS, torch.linspace(-1, 1, batch, device="cuda")

    def step():
        drawn = Categorical(probs=fit.model(seen), validate_args=check)
        loss = -(drawn.log_prob(actions) * gain).mean() - 0.01 * drawn.entropy().mean()
        fit.update(loss)
        return loss.detach()

    return step


def before(batch: int, width: int, depth: int) -> Step:
    return acted(True, batch, width, depth)


def after(batch: int, width: int, depth: int) -> Step:
    return acted(False, batch, width, depth)


if __name__ == "__main__":
    profiled(before, SIZES)
