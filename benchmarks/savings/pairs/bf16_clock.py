"""A large transformer step in bfloat16 is timed with a synchronisation at its end; the fix reads the clock only."""

import time

import torch
from heavy import LowPrecision, blocks, tokens
from parts import Step, collate, profiled

SIZES = {"light": (32, 512, 2048, 4, 2000), "heavy": (32, 512, 2048, 4, 8000)}
FIX = {
    "question": "all waits removed",
    "kind": "wait",
    "fresh": True,
    "settle_ms": 250,
    "limited": True,
    "findings": [("SYN105", "torch.cuda.synchronize()")],
}


def clocked(wait: bool, batch: int, length: int, width: int, depth: int, work: int) -> Step:
    fit, inputs, times = LowPrecision(blocks(width, depth)), tokens(batch, length, width), []

    def step():
        start = time.perf_counter()
        loss = fit.model(inputs).float().square().mean()
        fit.update(loss)
        if wait:
            torch.cuda.synchronize()
        times[:] = [time.perf_counter() - start]
        collate(work)
        return loss.detach()

    return step


def before(batch: int, length: int, width: int, depth: int, work: int) -> Step:
    return clocked(True, batch, length, width, depth, work)


def after(batch: int, length: int, width: int, depth: int, work: int) -> Step:
    return clocked(False, batch, length, width, depth, work)


if __name__ == "__main__":
    profiled(before, SIZES)
