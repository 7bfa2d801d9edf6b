"""Each level of a ladder of latents is a distribution that checks its arguments. The fix checks none."""

from __future__ import annotations

import torch
from models import Fit
from parts import Step, profiled
from torch import nn
from torch.distributions import Normal

SIZES = {"few": (64, 128, 4), "large": (16384, 1024, 4)}
FIX = {
    "question": "all waits removed",
    "kind": "wait",
    "fresh": True,
    "newest": True,
    "contact": 6,
    "findings": [("SYN", "Normal(mean"), ("SYN", "log_prob(drawn)")],
}


def laddered(check: bool, batch: int, width: int, levels: int) -> Step:
    torch.manual_seed(0)
    fit = Fit(nn.ModuleList(nn.Linear(width, 2 * width) for _ in range(levels)))
    inputs = torch.linspace(-1, 1, batch * width, device="cuda").reshape(batch, width)
    noise = torch.sin(torch.arange(batch * width, device="cuda")).reshape(batch, width)

    def step():
        hidden, total = inputs, torch.zeros((), device="cuda")
        for level in fit.model:
            mean, spread = level(hidden).chunk(2, dim=1)
            latent = Normal(mean, nn.functional.softplus(spread) + 0.1, validate_args=check)
            drawn = mean + latent.scale * noise
            total = total - latent.log_prob(drawn).mean()
            hidden = drawn.tanh()
        fit.update(total)
        return total.detach()

    return step


def before(batch: int, width: int, levels: int) -> Step:
    return laddered(True, batch, width, levels)


def after(batch: int, width: int, levels: int) -> Step:
    return laddered(False, batch, width, levels)


if __name__ == "__main__":
    profiled(before, SIZES)
