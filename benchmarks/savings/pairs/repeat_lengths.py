"""Sequences are spread out by lengths that only the device knows; the fix says how long the result is."""

import torch
from models import Fit, transformer
from parts import Step, profiled
from torch import nn

SIZES = {"small": (16, 32, 256, 4), "medium": (128, 128, 512, 4)}
FIX = {
    "question": "wait removed",
    "kind": "wait",
    "fresh": True,
    "findings": [("SYN", "torch.repeat_interleave(")],
}


def spread(told: bool, batch: int, length: int, width: int, depth: int) -> Step:
    fit = Fit(transformer(width, depth))
    words = torch.arange(batch, device="cuda")
    counts = torch.full((batch,), length, device="cuda")
    size = batch * length if told else None

    def step():
        prompt = torch.repeat_interleave(words, counts, output_size=size).reshape(batch, length)
        scores = fit.model(prompt)
        loss = nn.functional.cross_entropy(scores.flatten(0, 1), prompt.flatten())
        fit.update(loss)
        return loss.detach()

    return step


def before(batch: int, length: int, width: int, depth: int) -> Step:
    return spread(False, batch, length, width, depth)


def after(batch: int, length: int, width: int, depth: int) -> Step:
    return spread(True, batch, length, width, depth)


if __name__ == "__main__":
    profiled(before, SIZES)
