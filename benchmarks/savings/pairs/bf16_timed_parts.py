"""Each part of a large step in bfloat16 is timed with a wait. The fix times nothing."""

from __future__ import annotations

import time

import torch
from heavy import LowPrecision, mlp, rows
from parts import Step, collate, profiled

SIZES = {"heavy": (8192, 4096, 5, 4000), "light": (8192, 4096, 8, 2500)}
FIX = {
    "question": "all waits removed",
    "kind": "wait",
    "fresh": True,
    "newest": True,
    "contact": 3,
    "settle_ms": 300,
    "limited": True,
    "findings": [("SYN", "torch.cuda.synchronize()")],
}


def clocked(wait: bool, batch: int, width: int, depth: int, work: int) -> Step:
    fit, inputs, times = LowPrecision(mlp(width, depth)), rows(batch, width), []

    def now() -> float:
        if wait:
            torch.cuda.synchronize()
        return time.perf_counter()

    def step():
        begin = now()
        loss = fit.model(inputs).float().square().mean()
        forward = now()
        fit.update(loss)
        times[:] = [forward - begin, now() - forward]
        collate(work)
        return loss.detach()

    return step


def before(batch: int, width: int, depth: int, work: int) -> Step:
    return clocked(True, batch, width, depth, work)


def after(batch: int, width: int, depth: int, work: int) -> Step:
    return clocked(False, batch, width, depth, work)


if __name__ == "__main__":
    profiled(before, SIZES)
