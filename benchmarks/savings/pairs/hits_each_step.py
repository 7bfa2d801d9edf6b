"""A small network counts its right answers in each step. The fix adds them up on the device."""

from __future__ import annotations

import torch
from models import Fit, convnet, images
from parts import Step, profiled

SIZES = {"hosted": (32, 16, 32, 5), "medium": (512, 32, 32, 6)}
FIX = {
    "question": "all waits removed",
    "kind": "wait",
    "fresh": True,
    "newest": True,
    "findings": [
        ("SYN", "right.item()"),
        ("SYN", "loss.item()"),
    ],
}


def counted(read: bool, batch: int, side: int, channels: int, depth: int) -> Step:
    fit, inputs = Fit(convnet(channels, depth)), images(batch, side)
    labels, seen = torch.arange(batch, device="cuda") % 10, []

    def step():
        scores = fit.model(inputs)
        loss = torch.nn.functional.cross_entropy(scores, labels)
        fit.update(loss)
        right, loss = (scores.argmax(1) == labels).sum(), loss.detach()
        seen[:] = [right.item(), loss.item()] if read else [right, loss]
        return loss

    return step


def before(batch: int, side: int, channels: int, depth: int) -> Step:
    return counted(True, batch, side, channels, depth)


def after(batch: int, side: int, channels: int, depth: int) -> Step:
    return counted(False, batch, side, channels, depth)


if __name__ == "__main__":
    profiled(before, SIZES)
