"""A compiled model counts its calls in a Python int, so Dynamo compiles it eight times and then leaves it uncompiled.

The fix keeps the count outside and gives the model what it needs of it as a tensor.
"""

import torch
from blocks import blocks, rows
from parts import Step, profiled
from torch import nn

SIZES = {"small": (256, 512, 8)}
FIX = {
    "question": "compiled once",
    "kind": "transform",
    "fresh": True,
    "compiled": True,
    "findings": [("CMP701", "self.seen")],
}


class Counting(nn.Module):
    def __init__(self, width: int, depth: int) -> None:
        super().__init__()
        self.body, self.seen = blocks(width, depth), 0

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.seen += 1
        return self.body(x) * (1.0 - 0.5**self.seen)


class Scaled(nn.Module):
    def __init__(self, width: int, depth: int) -> None:
        super().__init__()
        self.body = blocks(width, depth)

    def forward(self, x: torch.Tensor, scale: torch.Tensor) -> torch.Tensor:
        return self.body(x) * scale


def before(batch: int, width: int, depth: int) -> Step:
    model, inputs = torch.compile(Counting(width, depth).requires_grad_(False)), rows(batch, width)

    def step():
        return model(inputs)

    return step


def after(batch: int, width: int, depth: int) -> Step:
    model, inputs = torch.compile(Scaled(width, depth).requires_grad_(False)), rows(batch, width)
    scale, seen = torch.empty((), device="cuda"), 0

    def step():
        nonlocal seen
        seen += 1
        return model(inputs, scale.fill_(1.0 - 0.5**seen))

    return step


if __name__ == "__main__":
    profiled(before, SIZES)
