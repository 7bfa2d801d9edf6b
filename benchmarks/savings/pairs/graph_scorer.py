"""A recommender scores a batch, launch by launch. The fix replays it as a CUDA graph."""

from __future__ import annotations

import torch
from parts import Step, profiled
from torch import nn

SIZES = {"small": (128, 32, 12), "wide": (4096, 64, 26)}
FIX = {
    "question": "CUDA graph",
    "kind": "transform",
    "fresh": True,
    "newest": True,
    "contact": 5,
    "findings": [("LCH501", "")],
}


class Scorer(nn.Module):
    def __init__(self, width: int, many: int) -> None:
        super().__init__()
        self.tables = nn.ModuleList(nn.Embedding(1000, width) for _ in range(many))
        layers = [layer for _ in range(6) for layer in (nn.Linear(512, 512), nn.ReLU())]
        self.head = nn.Sequential(nn.Linear(many * width, 512), *layers, nn.Linear(512, 1))

    def forward(self, columns: list[torch.Tensor]) -> torch.Tensor:
        return self.head(torch.cat([table(ids) for table, ids in zip(self.tables, columns, strict=True)], dim=1))


def scored(eager: bool, batch: int, width: int, many: int) -> Step:
    torch.manual_seed(0)
    model = Scorer(width, many).to("cuda").requires_grad_(False)
    columns = [torch.arange(batch, device="cuda") * (2 * number + 1) % 1000 for number in range(many)]

    def once():
        return model(columns)

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
    return scored(True, batch, width, many)


def after(batch: int, width: int, many: int) -> Step:
    return scored(False, batch, width, many)


if __name__ == "__main__":
    profiled(before, SIZES)
