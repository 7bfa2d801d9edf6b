"""The forward and the backward of each step are timed with waits. The fix times nothing."""

from __future__ import annotations

import time

import torch
from models import Fit, transformer, words
from parts import Step, profiled

SIZES = {"hosted": (4, 32, 128, 6), "medium": (64, 128, 256, 6)}
FIX = {
    "question": "all waits removed",
    "kind": "wait",
    "fresh": True,
    "newest": True,
    "contact": 1,
    "findings": [
        ("SYN105", "torch.cuda.synchronize()"),
    ],
}


def clocked(wait: bool, batch: int, length: int, width: int, depth: int) -> Step:
    fit, prompt, times = Fit(transformer(width, depth)), words(batch, length), []

    def now() -> float:
        if wait:
            torch.cuda.synchronize()
        return time.perf_counter()

    def step():
        start = now()
        scores = fit.model(prompt)
        loss = torch.nn.functional.cross_entropy(scores.flatten(0, 1), prompt.flatten())
        forward = now()
        fit.update(loss)
        times[:] = [forward - start, now() - forward]
        return loss.detach()

    return step


def before(batch: int, length: int, width: int, depth: int) -> Step:
    return clocked(True, batch, length, width, depth)


def after(batch: int, length: int, width: int, depth: int) -> Step:
    return clocked(False, batch, length, width, depth)


if __name__ == "__main__":
    profiled(before, SIZES)
