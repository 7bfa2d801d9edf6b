"""Positions are made on the host and moved in each step. The fix makes them on the device."""

from __future__ import annotations

import torch
from models import Fit, transformer, words
from parts import Step, profiled

SIZES = {"hosted": (8, 128, 128, 4), "medium": (64, 128, 256, 4)}
FIX = {
    "question": "copy gone",
    "kind": "transform",
    "fresh": True,
    "newest": True,
    "contact": 1,
    "findings": [
        ("SYN", 'to("cuda")'),
        ("CPY2", 'to("cuda")'),
    ],
}


def placed(move: bool, batch: int, length: int, width: int, depth: int) -> Step:
    fit, prompt = Fit(transformer(width, depth)), words(batch, length)

    def step():
        places = torch.arange(length).to("cuda") if move else torch.arange(length, device="cuda")
        scores = fit.model(prompt)
        losses = torch.nn.functional.cross_entropy(scores.flatten(0, 1), prompt.flatten(), reduction="none")
        loss = (losses.view(batch, length) * places.ne(0)).mean()
        fit.update(loss)
        return loss.detach()

    return step


def before(batch: int, length: int, width: int, depth: int) -> Step:
    return placed(True, batch, length, width, depth)


def after(batch: int, length: int, width: int, depth: int) -> Step:
    return placed(False, batch, length, width, depth)


if __name__ == "__main__":
    profiled(before, SIZES)
