"""The confusions of each batch are counted by ``bincount``, which asks for the greatest. The fix adds them up."""

from __future__ import annotations

import torch
from models import Fit, convnet, images
from parts import Step, collate, profiled
from torch import nn

SIZES = {"medium": (128, 32, 64, 1500), "hosted": (16, 16, 32, 800)}
FIX = {
    "question": "all waits removed",
    "kind": "wait",
    "fresh": True,
    "newest": True,
    "contact": 6,
    "findings": [("SYN", "torch.bincount(pairs")],
}
CLASSES, DEPTH = 10, 5


def confused(count: bool, batch: int, side: int, channels: int, work: int) -> Step:
    fit, pictures = Fit(convnet(channels, DEPTH, CLASSES)), images(batch, side)
    labels, ones = torch.arange(batch, device="cuda") % CLASSES, torch.ones(batch, dtype=torch.long, device="cuda")

    def step():
        scores = fit.model(pictures)
        pairs = labels * CLASSES + scores.detach().argmax(1)
        if count:
            table = torch.bincount(pairs, minlength=CLASSES**2)
        else:
            table = torch.zeros(CLASSES**2, dtype=torch.long, device="cuda").scatter_add_(0, pairs, ones)
        collate(work)
        fit.update(nn.functional.cross_entropy(scores, labels))
        return table

    return step


def before(batch: int, side: int, channels: int, work: int) -> Step:
    return confused(True, batch, side, channels, work)


def after(batch: int, side: int, channels: int, work: int) -> Step:
    return confused(False, batch, side, channels, work)


if __name__ == "__main__":
    profiled(before, SIZES)
