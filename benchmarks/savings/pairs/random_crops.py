"""Where each picture is cropped is drawn on the device and read picture by picture. The fix draws on the host."""

from __future__ import annotations

import torch
from models import Fit, convnet, images
from parts import Step, profiled
from torch import nn

SIZES = {"few": (8, 32, 16), "many": (32, 48, 32)}
FIX = {
    "question": "all waits removed",
    "kind": "wait",
    "fresh": True,
    "newest": True,
    "contact": 6,
    "findings": [("SYN", "int(tops[number])")],
}


def cropped(read: bool, batch: int, side: int, channels: int) -> Step:
    fit, pictures = Fit(convnet(channels, 2)), images(batch, side)
    labels, inner = torch.arange(batch, device="cuda") % 10, side - side // 4
    state = torch.arange(batch, device="cuda") * 7 % (side - inner + 1)
    known = [number * 7 % (side - inner + 1) for number in range(batch)]

    def step():
        tops = state + 0
        crops = []
        for number in range(batch):
            top = int(tops[number]) if read else known[number]
            crops.append(pictures[number, :, top : top + inner, top : top + inner])
        loss = nn.functional.cross_entropy(fit.model(torch.stack(crops)), labels)
        fit.update(loss)
        return loss.detach()

    return step


def before(batch: int, side: int, channels: int) -> Step:
    return cropped(True, batch, side, channels)


def after(batch: int, side: int, channels: int) -> Step:
    return cropped(False, batch, side, channels)


if __name__ == "__main__":
    profiled(before, SIZES)
