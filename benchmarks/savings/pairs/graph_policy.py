"""A small policy answers one observation after the other. The fix replays each answer as a CUDA graph."""

from __future__ import annotations

import torch
from parts import Step, profiled
from torch import nn

SIZES = {"shallow": (8, 128, 6, 8), "deep": (8, 128, 24, 4)}
FIX = {
    "question": "CUDA graph",
    "kind": "transform",
    "fresh": True,
    "newest": True,
    "contact": 1,
    "findings": [("LCH501", "")],
}


def policy(batch: int, width: int, depth: int):
    torch.manual_seed(0)
    layers = [part for _ in range(depth) for part in (nn.Linear(width, width), nn.LayerNorm(width), nn.Tanh())]
    model = nn.Sequential(*layers).to("cuda").requires_grad_(False)
    return model, torch.linspace(-1, 1, batch * width, device="cuda").reshape(batch, width)


def before(batch: int, width: int, depth: int, answers: int) -> Step:
    model, state = policy(batch, width, depth)

    def step():
        values = state
        for _ in range(answers):
            values = model(values)
        return values

    return step


def after(batch: int, width: int, depth: int, answers: int) -> Step:
    model, state = policy(batch, width, depth)
    side_stream, recorded = torch.cuda.Stream(), torch.cuda.CUDAGraph()
    side_stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side_stream):
        for _ in range(3):
            model(state)
    torch.cuda.current_stream().wait_stream(side_stream)
    with torch.cuda.graph(recorded):
        result = state
        for _ in range(answers):
            result = model(result)

    def step():
        recorded.replay()
        return result

    return step


if __name__ == "__main__":
    profiled(before, SIZES)
