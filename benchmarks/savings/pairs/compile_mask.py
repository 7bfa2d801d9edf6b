"""A compiled loss picks rows by a mask: how many they are is known on the device only, so the graph ends there and the
host waits. The fix weighs all rows."""

import torch
from blocks import blocks, rows
from parts import Step, profiled

SIZES = {"small": (64, 256, 8)}
FIX = {
    "question": "one graph",
    "kind": "transform",
    "fresh": True,
    "compiled": True,
    "findings": [("CMP702", "errors[errors > 0]"), ("SYN103", "errors[errors > 0]")],
}


def before(batch: int, width: int, depth: int) -> Step:
    model, inputs = blocks(width, depth).requires_grad_(False), rows(batch, width)

    @torch.compile
    def hinge(x: torch.Tensor) -> torch.Tensor:
        errors = (model(x) > x).int()
        return errors[errors > 0].sum()

    def step():
        return hinge(inputs)

    return step


def after(batch: int, width: int, depth: int) -> Step:
    model, inputs = blocks(width, depth).requires_grad_(False), rows(batch, width)

    @torch.compile
    def hinge(x: torch.Tensor) -> torch.Tensor:
        errors = (model(x) > x).int()
        return torch.where(errors > 0, errors, 0).sum()

    def step():
        return hinge(inputs)

    return step


if __name__ == "__main__":
    profiled(before, SIZES)
