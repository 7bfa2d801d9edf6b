"""An equation that a network describes is solved in steps, launch by launch. The fix replays them as a CUDA graph."""

from __future__ import annotations

import torch
from parts import Step, profiled
from torch import nn

SIZES = {"small": (128, 64, 6), "wide": (4096, 1024, 6)}
FIX = {
    "question": "CUDA graph",
    "kind": "transform",
    "fresh": True,
    "newest": True,
    "contact": 9,
    "written": "2026-11-28, before any run",
    "findings": [("LCH501", "")],
}


def solved(eager: bool, batch: int, width: int, rounds: int) -> Step:
    torch.manual_seed(0)
    slope = nn.Sequential(nn.Linear(width, width), nn.Tanh(), nn.Linear(width, width))
    slope = slope.to("cuda").requires_grad_(False)
    begin = torch.linspace(-1, 1, batch * width, device="cuda").reshape(batch, width)
    size = 1 / rounds

    def once():
        state = begin
        for _ in range(rounds):
            first = slope(state)
            second = slope(state + size / 2 * first)
            third = slope(state + size / 2 * second)
            fourth = slope(state + size * third)
            state = state + size / 6 * (first + 2 * second + 2 * third + fourth)
        return state

    if eager:
        return once

    side_stream, recorded = torch.cuda.Stream(), torch.cuda.CUDAGraph()
    side_stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side_stream):
        for _ in range(3):
            once()
    torch.cuda.current_stream().wait_stream(side_stream)
    with torch.cuda.graph(recorded):
        result = once()

    def step():
        recorded.replay()
        return result

    return step


def before(batch: int, width: int, rounds: int) -> Step:
    return solved(True, batch, width, rounds)


def after(batch: int, width: int, rounds: int) -> Step:
    return solved(False, batch, width, rounds)


if __name__ == "__main__":
    profiled(before, SIZES)
