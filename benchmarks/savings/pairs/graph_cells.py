"""A recurrent cell reads a sequence, launch by launch. The fix replays all of it as a CUDA graph."""

from __future__ import annotations

import torch
from parts import Step, profiled
from torch import nn

SIZES = {"short": (32, 256, 24)}
FIX = {
    "question": "CUDA graph",
    "kind": "transform",
    "fresh": True,
    "newest": True,
    "findings": [
        ("LCH501", ""),
    ],
}


def cells(batch: int, width: int):
    torch.manual_seed(0)
    return nn.GRUCell(width, width).to("cuda").requires_grad_(False), torch.ones(batch, width, device="cuda")


def read(cell: nn.Module, inputs: torch.Tensor, length: int) -> torch.Tensor:
    state = torch.zeros_like(inputs)
    for _ in range(length):
        state = cell(inputs, state)
    return state


def before(batch: int, width: int, length: int) -> Step:
    cell, inputs = cells(batch, width)

    def step():
        return read(cell, inputs, length)

    return step


def after(batch: int, width: int, length: int) -> Step:
    cell, inputs = cells(batch, width)
    side_stream, recorded = torch.cuda.Stream(), torch.cuda.CUDAGraph()
    side_stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side_stream):
        for _ in range(3):
            read(cell, inputs, length)
    torch.cuda.current_stream().wait_stream(side_stream)
    with torch.cuda.graph(recorded):
        result = read(cell, inputs, length)

    def step():
        recorded.replay()
        return result

    return step


if __name__ == "__main__":
    profiled(before, SIZES)
