"""The largest gradient of each weight goes into a running mean on the host. The fix keeps the peaks on the device."""

from __future__ import annotations

import torch
from models import Fit
from parts import Step, profiled
from torch import nn

SIZES = {"small": (64, 256, 6), "deep": (64, 256, 24)}
FIX = {
    "question": "all waits removed",
    "kind": "wait",
    "fresh": True,
    "newest": True,
    "contact": 5,
    "findings": [("SYN", "float(peak)")],
}


def watched(read: bool, batch: int, width: int, depth: int) -> Step:
    torch.manual_seed(0)
    layers = [layer for _ in range(depth) for layer in (nn.Linear(width, width), nn.ReLU())]
    fit = Fit(nn.Sequential(*layers))
    inputs = torch.linspace(-1, 1, batch * width, device="cuda").reshape(batch, width)
    means, peaks = [0.0] * len(fit.parameters), []

    def step():
        loss = fit.model(inputs).square().mean()
        fit.update(loss)
        peaks.clear()
        for number, weight in enumerate(fit.parameters):
            peak = weight.grad.abs().max()
            if read:
                means[number] = 0.98 * means[number] + 0.02 * float(peak)
            else:
                peaks.append(peak)
        return loss.detach()

    return step


def before(batch: int, width: int, depth: int) -> Step:
    return watched(True, batch, width, depth)


def after(batch: int, width: int, depth: int) -> Step:
    return watched(False, batch, width, depth)


if __name__ == "__main__":
    profiled(before, SIZES)
