"""A flow of affine couplings turns noise into samples, launch by launch. The fix replays all of it as a CUDA graph."""

from __future__ import annotations

import torch
from parts import Step, profiled
from torch import nn

SIZES = {"small": (256, 64, 8)}
FIX = {
    "question": "CUDA graph",
    "kind": "transform",
    "fresh": True,
    "newest": True,
    "contact": 9,
    "written": "2026-11-28, before any run",
    "findings": [("LCH501", "")],
}


class Coupling(nn.Module):
    """Scales and shifts one half of the values by what the other says, and swaps them."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.says = nn.Sequential(nn.Linear(width, 2 * width), nn.ReLU(), nn.Linear(2 * width, 2 * width))

    def forward(self, one: torch.Tensor, other: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        scale, shift = self.says(one).chunk(2, dim=1)
        return (other - shift) * torch.exp(-torch.tanh(scale)), one


def drawn(eager: bool, batch: int, width: int, depth: int) -> Step:
    torch.manual_seed(0)
    couplings = nn.ModuleList(Coupling(width) for _ in range(depth)).to("cuda").requires_grad_(False)
    noise = torch.linspace(-1, 1, 2 * batch * width, device="cuda").reshape(2, batch, width)

    def once():
        one, other = noise
        for coupling in couplings:
            one, other = coupling(one, other)
        return torch.cat([one, other], dim=1)

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


def before(batch: int, width: int, depth: int) -> Step:
    return drawn(True, batch, width, depth)


def after(batch: int, width: int, depth: int) -> Step:
    return drawn(False, batch, width, depth)


if __name__ == "__main__":
    profiled(before, SIZES)
