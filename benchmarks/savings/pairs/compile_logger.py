"""A compiled model writes to a log between its blocks: each call ends a graph. The fix logs what it did afterwards."""

import logging

import torch
from blocks import blocks, rows
from parts import Step, profiled

SIZES = {"small": (64, 256, 8)}
FIX = {
    "question": "one graph",
    "kind": "transform",
    "fresh": True,
    "compiled": True,
    "findings": [("CMP702", "log.info(")],
}

log = logging.getLogger(__name__)


def before(batch: int, width: int, depth: int) -> Step:
    parts, inputs = [blocks(width, 1).requires_grad_(False) for _ in range(depth)], rows(batch, width)

    @torch.compile
    def read(x: torch.Tensor) -> torch.Tensor:
        for part in parts:
            x = part(x)
            log.info("read %s", x.shape)
        return x

    def step():
        return read(inputs)

    return step


def after(batch: int, width: int, depth: int) -> Step:
    parts, inputs = [blocks(width, 1).requires_grad_(False) for _ in range(depth)], rows(batch, width)

    @torch.compile
    def read(x: torch.Tensor) -> torch.Tensor:
        for part in parts:
            x = part(x)
        return x

    def step():
        result = read(inputs)
        for _ in parts:
            log.info("read %s", result.shape)
        return result

    return step


if __name__ == "__main__":
    profiled(before, SIZES)
