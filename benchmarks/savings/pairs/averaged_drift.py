"""How far the running mean of each weight is from it is read weight by weight. The fix leaves it on the device."""

from __future__ import annotations

import torch
from parts import Step, profiled
from torch import nn

SIZES = {"small": (16, 16, 64, 3), "wide": (256, 64, 512, 4)}
FIX = {
    "question": "all waits removed",
    "kind": "wait",
    "fresh": True,
    "newest": True,
    "contact": 9,
    "written": "2026-11-28, before any run",
    "findings": [("SYN", "(kept - new).norm().item()")],
}


class Mixer(nn.Module):
    """Mixes the tokens of a picture, then the channels of each."""

    def __init__(self, tokens: int, width: int) -> None:
        super().__init__()
        self.norm, self.norm_after = nn.LayerNorm(width), nn.LayerNorm(width)
        self.across = nn.Linear(tokens, tokens)
        self.along = nn.Sequential(nn.Linear(width, 2 * width), nn.GELU(), nn.Linear(2 * width, width))

    def forward(self, given: torch.Tensor) -> torch.Tensor:
        given = given + self.across(self.norm(given).transpose(1, 2)).transpose(1, 2)
        return given + self.along(self.norm_after(given))


def averaged(read: bool, batch: int, tokens: int, width: int, depth: int) -> Step:
    torch.manual_seed(0)
    model = nn.Sequential(*(Mixer(tokens, width) for _ in range(depth))).to("cuda")
    weights = list(model.parameters())
    means = [weight.detach().clone() for weight in weights]
    optimizer = torch.optim.AdamW(weights, lr=1e-3)
    patches = torch.linspace(-1, 1, batch * tokens * width, device="cuda").reshape(batch, tokens, width)
    drifts = []

    def step():
        loss = model(patches).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        drifts.clear()
        with torch.no_grad():
            for kept, new in zip(means, weights, strict=True):
                kept.lerp_(new, 0.01)
                drifts.append((kept - new).norm().item() if read else (kept - new).norm())
        return loss.detach()

    return step


def before(batch: int, tokens: int, width: int, depth: int) -> Step:
    return averaged(True, batch, tokens, width, depth)


def after(batch: int, tokens: int, width: int, depth: int) -> Step:
    return averaged(False, batch, tokens, width, depth)


if __name__ == "__main__":
    profiled(before, SIZES)
