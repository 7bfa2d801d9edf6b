"""The norm of the gradients is read in each step. The fix keeps it on the device."""

from __future__ import annotations

import torch
from models import Fit, transformer, words
from parts import Step, profiled

SIZES = {"hosted": (4, 32, 128, 4), "medium": (64, 128, 256, 6)}
FIX = {
    "question": "wait removed",
    "kind": "wait",
    "fresh": True,
    "newest": True,
    "contact": 1,
    "findings": [
        ("SYN", "float(norm)"),
    ],
}


def normed(read: bool, batch: int, length: int, width: int, depth: int) -> Step:
    fit, prompt, norms = Fit(transformer(width, depth)), words(batch, length), []

    def step():
        scores = fit.model(prompt)
        loss = torch.nn.functional.cross_entropy(scores.flatten(0, 1), prompt.flatten())
        fit.optimizer.zero_grad()
        loss.backward()
        norm = torch.nn.utils.clip_grad_norm_(fit.parameters, 1.0)
        norms[:] = [float(norm) if read else norm]
        fit.optimizer.step()
        return loss.detach()

    return step


def before(batch: int, length: int, width: int, depth: int) -> Step:
    return normed(True, batch, length, width, depth)


def after(batch: int, length: int, width: int, depth: int) -> Step:
    return normed(False, batch, length, width, depth)


if __name__ == "__main__":
    profiled(before, SIZES)
