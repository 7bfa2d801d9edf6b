"""A scheduler looks at the loss of each large step in bfloat16. The fix shows it one loss in a hundred."""

from __future__ import annotations

import itertools

from heavy import LowPrecision, mlp, rows
from parts import Step, collate, profiled
from torch.optim.lr_scheduler import ReduceLROnPlateau

SIZES = {"light": (8192, 4096, 8, 2000), "heavy": (8192, 4096, 5, 6000)}
FIX = {
    "question": "wait removed",
    "kind": "wait",
    "fresh": True,
    "newest": True,
    "contact": 1,
    "settle_ms": 250,
    "limited": True,
    "findings": [("SYN", "plateau.step(loss")],
}
EVERY = 100


def scheduled(every: int, batch: int, width: int, depth: int, work: int) -> Step:
    fit, inputs, count = LowPrecision(mlp(width, depth)), rows(batch, width), itertools.count(1)
    plateau = ReduceLROnPlateau(fit.optimizer, patience=10**9)

    def step():
        loss = fit.model(inputs).float().square().mean()
        fit.update(loss)
        if next(count) % every == 0:
            plateau.step(loss.detach())
        collate(work)
        return loss.detach()

    return step


def before(batch: int, width: int, depth: int, work: int) -> Step:
    return scheduled(1, batch, width, depth, work)


def after(batch: int, width: int, depth: int, work: int) -> Step:
    return scheduled(EVERY, batch, width, depth, work)


if __name__ == "__main__":
    profiled(before, SIZES)
