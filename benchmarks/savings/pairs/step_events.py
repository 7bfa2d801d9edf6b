"""The host waits for the event at the end of each step and reads the clock of the device. The fix does neither."""

from __future__ import annotations

import torch
from models import Fit
from parts import Step, collate, profiled
from torch import nn

SIZES = {"small": (64, 256, 8, 300), "medium": (4096, 1024, 8, 3000)}
FIX = {
    "question": "all waits removed",
    "kind": "wait",
    "fresh": True,
    "newest": True,
    "contact": 5,
    "findings": [("SYN", "end.synchronize()")],
}


def timed(wait: bool, batch: int, width: int, depth: int, work: int) -> Step:
    torch.manual_seed(0)
    layers = [layer for _ in range(depth) for layer in (nn.Linear(width, width), nn.ReLU())]
    fit, times = Fit(nn.Sequential(*layers)), []
    inputs = torch.linspace(-1, 1, batch * width, device="cuda").reshape(batch, width)
    begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))

    def step():
        begin.record()
        loss = fit.model(inputs).square().mean()
        fit.update(loss)
        end.record()
        if wait:
            end.synchronize()
            times[:] = [begin.elapsed_time(end)]
        collate(work)
        return loss.detach()

    return step


def before(batch: int, width: int, depth: int, work: int) -> Step:
    return timed(True, batch, width, depth, work)


def after(batch: int, width: int, depth: int, work: int) -> Step:
    return timed(False, batch, width, depth, work)


if __name__ == "__main__":
    profiled(before, SIZES)
