"""A step formats the norms of its layers into a line; the fix keeps them for later."""

import torch
from models import Fit, transformer, words
from parts import Step, profiled
from torch import nn

SIZES = {"small": (8, 16, 192, 3), "medium": (64, 64, 384, 4)}
FIX = {
    "question": "print gone",
    "kind": "wait",
    "fresh": True,
    "findings": [("SYN104", "str(norms)")],
}


def told(line: bool, batch: int, length: int, width: int, depth: int) -> Step:
    fit, prompt, lines = Fit(transformer(width, depth)), words(batch, length), []

    def step():
        scores = fit.model(prompt)
        loss = nn.functional.cross_entropy(scores.flatten(0, 1), prompt.flatten())
        fit.update(loss)
        norms = torch.stack([parameter.detach().norm() for parameter in fit.parameters[:8]])
        lines[:] = [str(norms) if line else norms]
        return loss.detach()

    return step


def before(batch: int, length: int, width: int, depth: int) -> Step:
    return told(True, batch, length, width, depth)


def after(batch: int, length: int, width: int, depth: int) -> Step:
    return told(False, batch, length, width, depth)


if __name__ == "__main__":
    profiled(before, SIZES)
