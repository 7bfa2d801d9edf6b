"""A decoder reads the best score after every token. The fix reads none."""

from __future__ import annotations

import torch
from models import transformer, words
from parts import Step, profiled

SIZES = {"short": (4, 16, 128, 2, 8), "wide": (32, 64, 384, 4, 8)}
FIX = {
    "question": "all waits removed",
    "kind": "wait",
    "fresh": True,
    "newest": True,
    "contact": 3,
    "findings": [("SYN", "best.item()")],
}


def decoded(read: bool, batch: int, length: int, width: int, depth: int, steps: int) -> Step:
    model, prompt = transformer(width, depth).to("cuda").requires_grad_(False), words(batch, length)

    def step():
        tokens, scores = prompt, []
        for _ in range(steps):
            values, token = model(tokens)[:, -1].max(-1, keepdim=True)
            tokens = torch.cat([tokens[:, 1:], token], dim=1)
            best = values.max()
            scores.append(best.item() if read else best)
        return tokens[0]

    return step


def before(batch: int, length: int, width: int, depth: int, steps: int) -> Step:
    return decoded(True, batch, length, width, depth, steps)


def after(batch: int, length: int, width: int, depth: int, steps: int) -> Step:
    return decoded(False, batch, length, width, depth, steps)


if __name__ == "__main__":
    profiled(before, SIZES)
