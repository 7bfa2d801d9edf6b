"""A decoder tosses a coin on the device at each word, whether it goes on from its own. The fix tosses on the host."""

from __future__ import annotations

import random

import torch
from models import Fit
from parts import Step, profiled
from torch import nn

SIZES = {"short": (32, 12, 128), "wide": (4096, 12, 1024)}
FIX = {
    "question": "all waits removed",
    "kind": "wait",
    "fresh": True,
    "newest": True,
    "contact": 7,
    "written": "2026-11-26, before any run",
    "findings": [("SYN", "own")],
}
WORDS = 100


class Decoder(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.words, self.cell, self.head = nn.Embedding(WORDS, width), nn.GRUCell(width, width), nn.Linear(width, WORDS)


def decoded(on_device: bool, batch: int, length: int, width: int) -> Step:
    fit, share = Fit(Decoder(width)), 2.0  # so that both versions go on from the same words
    text = torch.arange(batch * length, device="cuda").reshape(batch, length) % WORDS
    start = torch.zeros(batch, width, device="cuda")

    def step():
        state, word, total = start, text[:, 0], torch.zeros((), device="cuda")
        for number in range(1, length):
            state = fit.model.cell(fit.model.words(word), state)
            scores = fit.model.head(state)
            total = total + nn.functional.cross_entropy(scores, text[:, number])
            own = torch.rand((), device="cuda") < share if on_device else random.random() < share
            word = scores.argmax(1) if own else text[:, number]
        fit.update(total)
        return total.detach()

    return step


def before(batch: int, length: int, width: int) -> Step:
    return decoded(True, batch, length, width)


def after(batch: int, length: int, width: int) -> Step:
    return decoded(False, batch, length, width)


if __name__ == "__main__":
    profiled(before, SIZES)
