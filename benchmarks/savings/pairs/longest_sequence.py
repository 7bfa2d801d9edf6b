"""A batch is cut to its longest sequence, whose length only the device knows; the fix knows it on the host."""

import torch
from models import Fit, transformer, words
from parts import Step, collate, profiled
from torch import nn

SIZES = {"small": (16, 32, 256, 4, 500), "medium": (96, 128, 384, 4, 1500)}
FIX = {
    "question": "wait removed",
    "kind": "wait",
    "fresh": True,
    "findings": [("SYN102", "int(lengths.max())")],
}


def cut(told: bool, batch: int, length: int, width: int, depth: int, work: int) -> Step:
    fit, whole = Fit(transformer(width, depth)), words(batch, length)
    lengths = torch.full((batch,), length // 2, device="cuda")

    def step():
        longest = length // 2 if told else int(lengths.max())
        prompt = whole[:, :longest]
        collate(work)
        scores = fit.model(prompt)
        loss = nn.functional.cross_entropy(scores.flatten(0, 1), prompt.flatten())
        fit.update(loss)
        return loss.detach()

    return step


def before(batch: int, length: int, width: int, depth: int, work: int) -> Step:
    return cut(False, batch, length, width, depth, work)


def after(batch: int, length: int, width: int, depth: int, work: int) -> Step:
    return cut(True, batch, length, width, depth, work)


if __name__ == "__main__":
    profiled(before, SIZES)
