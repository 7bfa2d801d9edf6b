"""Steps of matrix products in low precision: what runs a large GPU at its power limit."""

from __future__ import annotations

import torch
from models import Attention, Fit
from torch import nn

LOW = torch.bfloat16 if torch.cuda.is_available() else torch.float32
"""Without a GPU it would take minutes."""


class LowPrecision(Fit):
    """A model in low precision and its optimizer."""

    def __init__(self, model: nn.Module) -> None:
        super().__init__(model.to(LOW))


def mlp(width: int, depth: int) -> nn.Module:
    torch.manual_seed(0)
    layers = [part for _ in range(depth) for part in (nn.Linear(width, width), nn.GELU())]
    return nn.Sequential(*layers, nn.Linear(width, 16))


def blocks(width: int, depth: int) -> nn.Module:
    torch.manual_seed(0)
    return nn.Sequential(*[Attention(width, max(width // 128, 1)) for _ in range(depth)])


def rows(batch: int, width: int) -> torch.Tensor:
    """Inputs on the device."""
    values = torch.linspace(-1, 1, batch * width, device="cuda").reshape(batch, width)
    return values.to(LOW)


def tokens(batch: int, length: int, width: int) -> torch.Tensor:
    return rows(batch * length, width).reshape(batch, length, width)


def allow_tf32() -> None:
    torch.backends.cuda.matmul.allow_tf32 = True
