"""A large step in bfloat16 adds the gradients of two parts and reads both losses. The fix adds up on the device."""

from __future__ import annotations

from heavy import LowPrecision, mlp, rows
from parts import Step, collate, profiled

SIZES = {"heavy": (4096, 4096, 8, 2500), "light": (8192, 4096, 5, 2000)}
FIX = {
    "question": "all waits removed",
    "kind": "wait",
    "fresh": True,
    "newest": True,
    "contact": 3,
    "settle_ms": 300,
    "limited": True,
    "findings": [("SYN", "loss.item()")],
}


PARTS = 2


def accumulated(read: bool, batch: int, width: int, depth: int, work: int) -> Step:
    fit, inputs, sums = LowPrecision(mlp(width, depth)), rows(batch, width), []

    def step():
        fit.optimizer.zero_grad()
        total = 0.0
        for _ in range(PARTS):
            loss = fit.model(inputs).float().square().mean() / PARTS
            loss.backward()
            total = total + (loss.item() if read else loss.detach())
            collate(work)
        fit.optimizer.step()
        sums[:] = [total]
        return loss.detach()

    return step


def before(batch: int, width: int, depth: int, work: int) -> Step:
    return accumulated(True, batch, width, depth, work)


def after(batch: int, width: int, depth: int, work: int) -> Step:
    return accumulated(False, batch, width, depth, work)


if __name__ == "__main__":
    profiled(before, SIZES)
