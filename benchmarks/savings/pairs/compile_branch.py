"""A compiled model branches on a device value: a wait, and two graphs in place of one. The fix clamps always."""

import torch
from blocks import blocks, rows
from parts import Step, profiled
from torch import nn

SIZES = {"small": (64, 256, 8), "large": (8192, 2048, 4)}
FIX = {
    "question": "one graph",
    "kind": "transform",
    "fresh": True,
    "compiled": True,
    "findings": [("CMP702", "hidden.max()"), ("SYN102", "hidden.max()")],
}


class Clamped(nn.Module):
    def __init__(self, width: int, depth: int, branches: bool) -> None:
        super().__init__()
        self.body, self.head, self.branches = blocks(width, depth), blocks(width, 1), branches

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        hidden = self.body(x)
        if self.branches:
            if hidden.max() > 100:
                hidden = hidden.clamp(max=100)
        else:
            hidden = hidden.clamp(max=100)
        return self.head(hidden)


def reading(batch: int, width: int, depth: int, branches: bool) -> Step:
    model, inputs = torch.compile(Clamped(width, depth, branches).requires_grad_(False)), rows(batch, width)

    def step():
        return model(inputs)

    return step


def before(batch: int, width: int, depth: int) -> Step:
    return reading(batch, width, depth, branches=True)


def after(batch: int, width: int, depth: int) -> Step:
    return reading(batch, width, depth, branches=False)


if __name__ == "__main__":
    profiled(before, SIZES)
