"""Each layer of a graph network picks the edges it keeps by a mask. The fix sends the others to a node of their own."""

from __future__ import annotations

import torch
from models import Fit
from parts import Step, profiled
from torch import nn

SIZES = {"medium": (20000, 200000, 128)}
FIX = {
    "question": "all waits removed",
    "kind": "wait",
    "fresh": True,
    "newest": True,
    "contact": 9,
    "written": "2026-11-28, before any run",
    "findings": [("SYN", "edges[:, kept]")],
}
LAYERS = 3


class Summed(nn.Module):
    """Adds to each node what its neighbours say."""

    def __init__(self, pick: bool, width: int) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.pick = pick
        self.own = nn.ModuleList(nn.Linear(width, width) for _ in range(LAYERS))
        self.told = nn.ModuleList(nn.Linear(width, width) for _ in range(LAYERS))

    def forward(self, values: torch.Tensor, edges: torch.Tensor, chance: torch.Tensor) -> torch.Tensor:
        nodes, width = values.shape
        for number, (own, told) in enumerate(zip(self.own, self.told, strict=True)):
            kept = chance > 0.1 + 0.02 * number
            if self.pick:
                source, target = edges[:, kept]
            else:
                source, target = edges[0], torch.where(kept, edges[1], nodes)
            heard = torch.zeros(nodes + 1, width, device="cuda").index_add(0, target, told(values)[source])
            values = torch.relu(own(values) + heard[:nodes] / 10)
        return values


def convolved(pick: bool, nodes: int, many: int, width: int) -> Step:
    fit = Fit(Summed(pick, width))
    values = torch.linspace(-1, 1, nodes * width, device="cuda").reshape(nodes, width)
    numbers = torch.arange(many, device="cuda")
    edges, chance = torch.stack([numbers * 7919 % nodes, numbers * 104729 % nodes]), numbers * 31 % 97 / 97

    def step():
        fit.update(fit.model(values, edges, chance).square().mean())
        return nodes

    return step


def before(nodes: int, many: int, width: int) -> Step:
    return convolved(True, nodes, many, width)


def after(nodes: int, many: int, width: int) -> Step:
    return convolved(False, nodes, many, width)


if __name__ == "__main__":
    profiled(before, SIZES)
