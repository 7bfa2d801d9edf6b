"""Each part of a large batch in bfloat16 ends with a wait, to be timed. The fix reads the clock only."""

from __future__ import annotations

import time

import torch
from heavy import LowPrecision, rows
from parts import Step, collate, profiled
from torch import nn

SIZES = {"heavy": (8192, 2048, 2, 2500)}
FIX = {
    "question": "all waits removed",
    "kind": "wait",
    "fresh": True,
    "newest": True,
    "contact": 9,
    "written": "2026-11-28, before any run",
    "settle_ms": 300,
    "limited": True,
    "findings": [("SYN", "torch.cuda.synchronize()")],
}
PARTS = 3


class Gated(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.norm, self.both, self.down = nn.LayerNorm(width), nn.Linear(width, 8 * width), nn.Linear(4 * width, width)

    def forward(self, given: torch.Tensor) -> torch.Tensor:
        values, gates = self.both(self.norm(given)).chunk(2, dim=1)
        return given + self.down(values * nn.functional.silu(gates))


def timed(wait: bool, batch: int, width: int, depth: int, work: int) -> Step:
    torch.manual_seed(0)
    fit = LowPrecision(nn.Sequential(*(Gated(width) for _ in range(depth))))
    inputs, seconds = rows(batch, width), [0.0] * PARTS

    def step():
        fit.optimizer.zero_grad()
        for part in range(PARTS):
            begin = time.perf_counter()
            loss = fit.model(inputs).float().square().mean() / PARTS
            loss.backward()
            if wait:
                torch.cuda.synchronize()
            seconds[part] = time.perf_counter() - begin
            collate(work)
        fit.optimizer.step()
        return loss.detach()

    return step


def before(batch: int, width: int, depth: int, work: int) -> Step:
    return timed(True, batch, width, depth, work)


def after(batch: int, width: int, depth: int, work: int) -> Step:
    return timed(False, batch, width, depth, work)


if __name__ == "__main__":
    profiled(before, SIZES)
