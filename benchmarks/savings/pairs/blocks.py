"""What the compiled pairs are made of: blocks of a product and a dozen pointwise ops, which Inductor fuses."""

from __future__ import annotations

import torch
from torch import nn


class Block(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.norm, self.mix = nn.LayerNorm(width), nn.Linear(width, width)
        self.gate = nn.Parameter(torch.full((width,), 0.1))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        mixed = self.mix(self.norm(x))
        return x + self.gate * torch.tanh(mixed) * torch.sigmoid(mixed + 0.5)


def blocks(width: int, depth: int) -> nn.Module:
    torch.manual_seed(0)
    return nn.Sequential(*(Block(width) for _ in range(depth))).to("cuda")


def rows(batch: int, width: int) -> torch.Tensor:
    """Numbers between -1 and 1 on the device."""
    return torch.sin(torch.arange(batch * width, device="cuda") / 7.0).reshape(batch, width)
