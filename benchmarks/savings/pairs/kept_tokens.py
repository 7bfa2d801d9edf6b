"""Tokens are chosen by a mask of booleans in each step. The fix weighs them instead."""

from __future__ import annotations

from models import Fit, transformer, words
from parts import Step, profiled

SIZES = {"medium": (64, 128, 256, 4)}
FIX = {
    "question": "wait removed",
    "kind": "wait",
    "fresh": True,
    "newest": True,
    "findings": [
        ("SYN103", "hidden[kept]"),
    ],
}


def chosen(choose: bool, batch: int, length: int, width: int, depth: int) -> Step:
    fit, prompt = Fit(transformer(width, depth)), words(batch, length)
    kept = prompt % 4 > 0

    def step():
        hidden = fit.model(prompt)
        loss = hidden.square().mean()
        fit.update(loss)
        hidden = hidden.detach()
        if choose:
            return hidden[kept].sum() > 0
        return (hidden * kept.unsqueeze(-1)).sum() > 0

    return step


def before(batch: int, length: int, width: int, depth: int) -> Step:
    return chosen(True, batch, length, width, depth)


def after(batch: int, length: int, width: int, depth: int) -> Step:
    return chosen(False, batch, length, width, depth)


if __name__ == "__main__":
    profiled(before, SIZES)
