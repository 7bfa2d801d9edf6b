"""A few experts answer the same batch, launch by launch. The fix replays all of them as a CUDA graph."""

from __future__ import annotations

import torch
from parts import Step, profiled
from torch import nn

SIZES = {"small": (64, 128, 8), "wide": (2048, 512, 8)}
FIX = {
    "question": "CUDA graph",
    "kind": "transform",
    "fresh": True,
    "newest": True,
    "contact": 7,
    "written": "2026-11-26, before any run",
    "findings": [("LCH501", "")],
}


class Experts(nn.Module):
    def __init__(self, width: int, many: int) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.gate = nn.Linear(width, many)
        self.experts = nn.ModuleList(
            nn.Sequential(nn.LayerNorm(width), nn.Linear(width, width), nn.SiLU(), nn.Linear(width, width))
            for _ in range(many)
        )

    def forward(self, given: torch.Tensor) -> torch.Tensor:
        shares, total = self.gate(given).softmax(1), torch.zeros_like(given)
        for number, expert in enumerate(self.experts):
            total = total + shares[:, number : number + 1] * expert(given)
        return total


def answered(eager: bool, batch: int, width: int, many: int) -> Step:
    model = Experts(width, many).to("cuda").requires_grad_(False)
    given = torch.linspace(-1, 1, batch * width, device="cuda").reshape(batch, width)

    def once():
        return model(given)

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


def before(batch: int, width: int, many: int) -> Step:
    return answered(True, batch, width, many)


def after(batch: int, width: int, many: int) -> Step:
    return answered(False, batch, width, many)


if __name__ == "__main__":
    profiled(before, SIZES)
