"""Weights of the parts of a loss are made into tensors on the device, one by one; the fix has them there."""

import torch
from models import Fit, convnet, images
from parts import Step, collate, profiled

SIZES = {"medium": (256, 32, 6, 64, 1000)}
FIX = {
    "question": "all waits removed",
    "kind": "wait",
    "held_out": True,
    "findings": [("SYN101", 'torch.tensor(weight, device="cuda")')],
}
WEIGHTS = (1.0, 0.5, 0.25, 0.125)


def task(batch: int, channels: int, depth: int, side: int) -> tuple[Fit, torch.Tensor]:
    return Fit(convnet(channels, depth, len(WEIGHTS))), images(batch, side)


def before(batch: int, channels: int, depth: int, side: int, rows: int) -> Step:
    fit, inputs = task(batch, channels, depth, side)

    def step():
        parts = fit.model(inputs).square().mean(0)
        loss = sum(part * torch.tensor(weight, device="cuda") for part, weight in zip(parts, WEIGHTS, strict=True))
        fit.update(loss)
        collate(rows)
        return loss.detach()

    return step


def after(batch: int, channels: int, depth: int, side: int, rows: int) -> Step:
    fit, inputs = task(batch, channels, depth, side)
    weights = [torch.tensor(weight, device="cuda") for weight in WEIGHTS]

    def step():
        parts = fit.model(inputs).square().mean(0)
        loss = sum(part * weight for part, weight in zip(parts, weights, strict=True))
        fit.update(loss)
        collate(rows)
        return loss.detach()

    return step


if __name__ == "__main__":
    profiled(before, SIZES)
