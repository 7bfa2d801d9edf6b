"""A large model in bfloat16 predicts, and its best words go to a list. The fix keeps them on the device."""

from __future__ import annotations

import torch
from heavy import LOW, blocks, tokens
from parts import Step, collate, profiled

SIZES = {"short": (32, 512, 2048, 5, 3000), "long": (16, 1024, 2048, 8, 3000)}
FIX = {
    "question": "all waits removed",
    "kind": "wait",
    "fresh": True,
    "newest": True,
    "contact": 2,
    "settle_ms": 300,
    "limited": True,
    "findings": [("SYN", "best.tolist()"), ("CPY2", "best.tolist()")],
}


def predicting(fetch: bool, batch: int, length: int, width: int, depth: int, work: int) -> Step:
    model, inputs, found = blocks(width, depth).to("cuda", LOW), tokens(batch, length, width), []

    @torch.no_grad()
    def step():
        best = model(inputs)[:, -1].argmax(1)
        found[:] = best.tolist() if fetch else [best]
        collate(work)
        return best

    return step


def before(batch: int, length: int, width: int, depth: int, work: int) -> Step:
    return predicting(True, batch, length, width, depth, work)


def after(batch: int, length: int, width: int, depth: int, work: int) -> Step:
    return predicting(False, batch, length, width, depth, work)


if __name__ == "__main__":
    profiled(before, SIZES)
