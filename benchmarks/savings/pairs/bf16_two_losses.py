"""Both losses of a large step in bfloat16 are read as they come. The fix keeps them on the device."""

from __future__ import annotations

from heavy import LowPrecision, mlp, rows
from parts import Step, profiled

SIZES = {"wide": (8192, 4096, 6), "deep": (4096, 4096, 12)}
FIX = {
    "question": "all waits removed",
    "kind": "wait",
    "fresh": True,
    "newest": True,
    "contact": 1,
    "settle_ms": 250,
    "limited": True,
    "findings": [("SYN", "error.item()"), ("SYN", "size.item()")],
}


def read(look: bool, batch: int, width: int, depth: int) -> Step:
    fit, inputs, log = LowPrecision(mlp(width, depth)), rows(batch, width), []

    def step():
        scores = fit.model(inputs).float()
        error = (scores - 1).square().mean()
        size = scores.abs().mean()
        log[:] = [error.item(), size.item()] if look else [error.detach(), size.detach()]
        fit.update(error + 0.1 * size)
        return error.detach()

    return step


def before(batch: int, width: int, depth: int) -> Step:
    return read(True, batch, width, depth)


def after(batch: int, width: int, depth: int) -> Step:
    return read(False, batch, width, depth)


if __name__ == "__main__":
    profiled(before, SIZES)
