"""The host makes word numbers of the lines of each batch itself. The fix has two workers do it."""

from __future__ import annotations

import torch
from models import Fit, transformer
from parts import Step, profiled
from torch.utils.data import DataLoader, Dataset

SIZES = {"slow": (64, 64, 128, 2)}
FIX = {
    "question": "more workers",
    "kind": "transform",
    "fresh": True,
    "newest": True,
    "contact": 3,
    "settle_ms": 150,
    "asked": "two workers",
    "findings": [("OVL303", "")],
}


class Lines(Dataset):
    """Lines of text as the numbers of their words."""

    def __init__(self, length: int) -> None:
        self.length = length

    def __len__(self) -> int:
        return 1 << 20

    def __getitem__(self, number: int) -> torch.Tensor:
        line = " ".join(f"word{(number + place) * 7919 % 1000}" for place in range(self.length))
        return torch.tensor([int(word[4:]) for word in line.split()])


def fed(alone: bool, batch: int, length: int, width: int, depth: int) -> Step:
    fit = Fit(transformer(width, depth))
    pinned = torch.cuda.is_available()
    coming = iter(DataLoader(Lines(length), batch_size=batch, num_workers=0 if alone else 2, pin_memory=pinned))

    def step():
        words = next(coming).to("cuda", non_blocking=True)
        scores = fit.model(words)
        loss = torch.nn.functional.cross_entropy(scores.flatten(0, 1), words.flatten())
        fit.update(loss)
        return loss.detach()

    return step


def before(batch: int, length: int, width: int, depth: int) -> Step:
    return fed(True, batch, length, width, depth)


def after(batch: int, length: int, width: int, depth: int) -> Step:
    return fed(False, batch, length, width, depth)


if __name__ == "__main__":
    profiled(before, SIZES)
