"""A large step in bfloat16 makes a line of text of its loss before the backward. The fix does so after the loop."""

from __future__ import annotations

from heavy import LowPrecision, blocks, tokens
from parts import Step, collate, profiled

SIZES = {"light": (32, 512, 2048, 3, 1000), "heavy": (32, 512, 2048, 2, 4000)}
FIX = {
    "question": "wait removed",
    "kind": "wait",
    "fresh": True,
    "newest": True,
    "contact": 2,
    "settle_ms": 300,
    "limited": True,
    "findings": [("SYN", "float(loss)")],
}


def shown(show: bool, batch: int, length: int, width: int, depth: int, work: int) -> Step:
    fit, inputs, lines = LowPrecision(blocks(width, depth)), tokens(batch, length, width), []

    def step():
        loss = fit.model(inputs).float().square().mean()
        lines[:] = [f"loss {float(loss):.4f}"] if show else [loss.detach()]
        fit.update(loss)
        collate(work)
        return loss.detach()

    return step


def before(batch: int, length: int, width: int, depth: int, work: int) -> Step:
    return shown(True, batch, length, width, depth, work)


def after(batch: int, length: int, width: int, depth: int, work: int) -> Step:
    return shown(False, batch, length, width, depth, work)


if __name__ == "__main__":
    profiled(before, SIZES)
