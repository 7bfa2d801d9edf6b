"""Each block of a compiled model writes to a log, and ends a graph there: many fragments in place of one graph. The fix
logs what it did afterwards."""

import logging

import torch
from blocks import Block, rows
from parts import Step, profiled
from torch import nn

SIZES = {"small": (64, 256, 8)}
FIX = {
    "question": "one graph",
    "kind": "transform",
    "fresh": True,
    "compiled": True,
    "findings": [("CMP702", "log.info(")],
}

log = logging.getLogger(__name__)


class Told(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.block = Block(width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        mixed = self.block(x)
        log.info("from %s to %s", x.shape, mixed.shape)
        return mixed + torch.tanh(x)


class Untold(Told):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.block(x) + torch.tanh(x)


def compiled(kind: type[nn.Module], width: int, depth: int) -> nn.Module:
    torch.manual_seed(0)
    return torch.compile(nn.Sequential(*(kind(width) for _ in range(depth))).to("cuda").requires_grad_(False))


def before(batch: int, width: int, depth: int) -> Step:
    model, inputs = compiled(Told, width, depth), rows(batch, width)

    def step():
        return model(inputs)

    return step


def after(batch: int, width: int, depth: int) -> Step:
    model, inputs = compiled(Untold, width, depth), rows(batch, width)

    def step():
        result = model(inputs)
        for _ in range(depth):
            log.info("from %s to %s", inputs.shape, result.shape)
        return result

    return step


if __name__ == "__main__":
    profiled(before, SIZES)
