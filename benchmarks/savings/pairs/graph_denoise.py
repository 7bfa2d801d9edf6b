"""A small network takes the noise from a sample in some steps. The fix replays them as a CUDA graph."""

from __future__ import annotations

import torch
from parts import Step, profiled
from torch import nn

SIZES = {"short": (32, 128, 4, 10), "long": (32, 256, 6, 20)}
FIX = {
    "question": "CUDA graph",
    "kind": "transform",
    "fresh": True,
    "newest": True,
    "contact": 3,
    "findings": [("LCH501", "")],
}


def denoised(eager: bool, batch: int, width: int, depth: int, times: int) -> Step:
    torch.manual_seed(0)
    layers = [part for _ in range(depth) for part in (nn.Linear(width, width), nn.SiLU())]
    model = nn.Sequential(*layers, nn.Linear(width, width)).to("cuda").requires_grad_(False)
    noise = torch.linspace(-1, 1, batch * width, device="cuda").reshape(batch, width)
    scales = torch.linspace(0.9, 0.1, times).tolist()

    def once():
        sample = noise
        for scale in scales:
            sample = sample - scale * model(sample + scale)
        return sample

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


def before(batch: int, width: int, depth: int, times: int) -> Step:
    return denoised(True, batch, width, depth, times)


def after(batch: int, width: int, depth: int, times: int) -> Step:
    return denoised(False, batch, width, depth, times)


if __name__ == "__main__":
    profiled(before, SIZES)
