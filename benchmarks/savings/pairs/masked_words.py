"""The scores of masked words are picked out before the loss. The fix weighs the others with 0."""

from __future__ import annotations

import torch
from models import Fit, transformer, words
from parts import Step, profiled

SIZES = {"hosted": (4, 32, 128, 4), "medium": (64, 64, 256, 4)}
FIX = {
    "question": "wait removed",
    "kind": "wait",
    "fresh": True,
    "newest": True,
    "contact": 1,
    "findings": [("SYN103", "losses[hidden]")],
}


def learnt(pick: bool, batch: int, length: int, width: int, depth: int) -> Step:
    fit, prompt = Fit(transformer(width, depth)), words(batch, length)
    hidden = (prompt % 7 == 0).flatten()

    def step():
        scores = fit.model(prompt).flatten(0, 1)
        losses = torch.nn.functional.cross_entropy(scores, prompt.flatten(), reduction="none")
        total = losses[hidden].sum() if pick else (losses * hidden).sum()
        fit.update(total / hidden.sum())
        return hidden.sum()

    return step


def before(batch: int, length: int, width: int, depth: int) -> Step:
    return learnt(True, batch, length, width, depth)


def after(batch: int, length: int, width: int, depth: int) -> Step:
    return learnt(False, batch, length, width, depth)


if __name__ == "__main__":
    profiled(before, SIZES)
