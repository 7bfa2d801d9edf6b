"""A small network reads pictures, launch by launch. The fix replays it as a CUDA graph."""

from __future__ import annotations

import torch
from models import convnet, images
from parts import Step, profiled

SIZES = {"small": (8, 32, 32, 20), "wide": (64, 64, 64, 12)}
FIX = {
    "question": "CUDA graph",
    "kind": "transform",
    "fresh": True,
    "newest": True,
    "findings": [
        ("LCH501", ""),
    ],
}


def reader(batch: int, side: int, channels: int, depth: int):
    return convnet(channels, depth).to("cuda").eval().requires_grad_(False), images(batch, side)


def before(batch: int, side: int, channels: int, depth: int) -> Step:
    model, pictures = reader(batch, side, channels, depth)

    def step():
        return model(pictures)

    return step


def after(batch: int, side: int, channels: int, depth: int) -> Step:
    model, pictures = reader(batch, side, channels, depth)
    side_stream, recorded = torch.cuda.Stream(), torch.cuda.CUDAGraph()
    side_stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side_stream):
        for _ in range(3):
            model(pictures)
    torch.cuda.current_stream().wait_stream(side_stream)
    with torch.cuda.graph(recorded):
        result = model(pictures)

    def step():
        recorded.replay()
        return result

    return step


if __name__ == "__main__":
    profiled(before, SIZES)
