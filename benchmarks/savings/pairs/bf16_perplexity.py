"""The perplexity of each large step in bfloat16 is read after the update. The fix keeps it on the device."""

from __future__ import annotations

from heavy import LowPrecision, blocks, tokens
from parts import Step, collate, profiled

SIZES = {"heavy": (8, 512, 2048, 3, 5000), "light": (16, 512, 2048, 3, 4000)}
FIX = {
    "question": "wait removed",
    "kind": "wait",
    "fresh": True,
    "newest": True,
    "contact": 3,
    "settle_ms": 300,
    "limited": True,
    "findings": [("SYN", "perplexity.item()")],
}


def told(read: bool, batch: int, length: int, width: int, depth: int, work: int) -> Step:
    fit, inputs, shown = LowPrecision(blocks(width, depth)), tokens(batch, length, width), []

    def step():
        loss = fit.model(inputs).float().square().mean()
        fit.update(loss)
        perplexity = loss.detach().exp()
        shown[:] = [perplexity.item() if read else perplexity]
        collate(work)
        return perplexity

    return step


def before(batch: int, length: int, width: int, depth: int, work: int) -> Step:
    return told(True, batch, length, width, depth, work)


def after(batch: int, length: int, width: int, depth: int, work: int) -> Step:
    return told(False, batch, length, width, depth, work)


if __name__ == "__main__":
    profiled(before, SIZES)
