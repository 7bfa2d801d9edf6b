"""How many rows fit into a batch is asked of the device. The fix knows it from the lengths on the host."""

from __future__ import annotations

import torch
from models import Fit, transformer, words
from parts import Step, collate, profiled
from torch import nn

SIZES = {"hosted": (32, 32, 256, 4, 500), "medium": (128, 128, 384, 4, 2000)}
FIX = {
    "question": "wait removed",
    "kind": "wait",
    "fresh": True,
    "newest": True,
    "contact": 5,
    "findings": [("SYN", "int((lengths.cumsum(0) <= budget).sum())")],
}


def fitted(told: bool, batch: int, length: int, width: int, depth: int, work: int) -> Step:
    fit, whole = Fit(transformer(width, depth)), words(batch, length)
    lengths, known = torch.full((batch,), length, device="cuda"), batch // 2
    budget = known * length

    def step():
        fits = known if told else int((lengths.cumsum(0) <= budget).sum())
        prompt = whole[:fits]
        collate(work)
        scores = fit.model(prompt)
        loss = nn.functional.cross_entropy(scores.flatten(0, 1), prompt.flatten())
        fit.update(loss)
        return loss.detach()

    return step


def before(batch: int, length: int, width: int, depth: int, work: int) -> Step:
    return fitted(False, batch, length, width, depth, work)


def after(batch: int, length: int, width: int, depth: int, work: int) -> Step:
    return fitted(True, batch, length, width, depth, work)


if __name__ == "__main__":
    profiled(before, SIZES)
