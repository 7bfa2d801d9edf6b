"""Many small critics judge the same observation, one after the other. The fix replays them as a CUDA graph."""

from __future__ import annotations

import torch
from parts import Step, profiled
from torch import nn

SIZES = {"few": (64, 128, 10), "many": (512, 512, 32)}
FIX = {
    "question": "CUDA graph",
    "kind": "transform",
    "fresh": True,
    "newest": True,
    "contact": 5,
    "findings": [("LCH501", "")],
}


def critic(width: int) -> nn.Module:
    return nn.Sequential(nn.Linear(width, width), nn.Tanh(), nn.Linear(width, width), nn.Tanh(), nn.Linear(width, 1))


class Critics(nn.Module):
    def __init__(self, width: int, many: int) -> None:
        super().__init__()
        self.critics = nn.ModuleList(critic(width) for _ in range(many))

    def forward(self, seen: torch.Tensor) -> torch.Tensor:
        return torch.stack([judge(seen) for judge in self.critics]).amin(0)


def judged(eager: bool, batch: int, width: int, many: int) -> Step:
    torch.manual_seed(0)
    model = Critics(width, many).to("cuda").requires_grad_(False)
    seen = torch.linspace(-1, 1, batch * width, device="cuda").reshape(batch, width)

    def once():
        return model(seen)

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
    return judged(True, batch, width, many)


def after(batch: int, width: int, many: int) -> Step:
    return judged(False, batch, width, many)


if __name__ == "__main__":
    profiled(before, SIZES)
