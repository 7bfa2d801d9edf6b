"""A decoder takes the five best words to the host after every token. The fix keeps them on the device."""

from __future__ import annotations

import torch
from models import transformer, words
from parts import Step, profiled
from torch import nn

SIZES = {"short": (4, 16, 128, 1, 8), "wide": (64, 64, 256, 2, 8)}
FIX = {
    "question": "all waits removed",
    "kind": "wait",
    "fresh": True,
    "newest": True,
    "contact": 5,
    "findings": [("SYN", "found.tolist()"), ("CPY2", "found.tolist()")],
}


class Decoder(nn.Module):
    def __init__(self, read: bool, width: int, depth: int, steps: int) -> None:
        super().__init__()
        self.model, self.read, self.steps = transformer(width, depth), read, steps

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        told = []
        for _ in range(self.steps):
            found = self.model(tokens)[:, -1].topk(5).indices
            tokens = torch.cat([tokens[:, 1:], found[:, :1]], dim=1)
            told.append(found.tolist() if self.read else found)
        return tokens[0]


def decoded(read: bool, batch: int, length: int, width: int, depth: int, steps: int) -> Step:
    decoder = Decoder(read, width, depth, steps).to("cuda").requires_grad_(False)
    prompt = words(batch, length)

    def step():
        return decoder(prompt)

    return step


def before(batch: int, length: int, width: int, depth: int, steps: int) -> Step:
    return decoded(True, batch, length, width, depth, steps)


def after(batch: int, length: int, width: int, depth: int, steps: int) -> Step:
    return decoded(False, batch, length, width, depth, steps)


if __name__ == "__main__":
    profiled(before, SIZES)
