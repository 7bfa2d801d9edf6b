"""The nodes of a batch of graphs are told which graph they are of by counts. The fix says how many nodes there are."""

from __future__ import annotations

import torch
from models import Fit
from parts import Step, profiled
from torch import nn

SIZES = {"small": (32, 20, 128, 3), "large": (512, 200, 512, 3)}
FIX = {
    "question": "all waits removed",
    "kind": "wait",
    "fresh": True,
    "newest": True,
    "contact": 7,
    "written": "2026-11-26, before any run",
    "findings": [("SYN", "torch.repeat_interleave(")],
}


class Convolved(nn.Module):
    """Each layer adds to a node the mean of its graph."""

    def __init__(self, ask: bool, graphs: int, nodes: int, width: int, depth: int) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.layers, self.head = nn.ModuleList(nn.Linear(width, width) for _ in range(depth)), nn.Linear(width, 2)
        self.size, self.graphs = None if ask else graphs * nodes, graphs

    def forward(self, values: torch.Tensor, counts: torch.Tensor) -> torch.Tensor:
        numbers = torch.arange(self.graphs, device="cuda")
        for layer in self.layers:
            of = torch.repeat_interleave(numbers, counts, output_size=self.size)
            means = torch.zeros(self.graphs, values.shape[1], device="cuda").index_add_(0, of, values)
            means = means / counts[:, None]
            values = layer(values).relu() + means[of]
        return self.head(means)


def convolved(ask: bool, graphs: int, nodes: int, width: int, depth: int) -> Step:
    fit = Fit(Convolved(ask, graphs, nodes, width, depth))
    values = torch.linspace(-1, 1, graphs * nodes * width, device="cuda").reshape(graphs * nodes, width)
    counts, labels = torch.full((graphs,), nodes, device="cuda"), torch.arange(graphs, device="cuda") % 2

    def step():
        loss = nn.functional.cross_entropy(fit.model(values, counts), labels)
        fit.update(loss)
        return graphs

    return step


def before(graphs: int, nodes: int, width: int, depth: int) -> Step:
    return convolved(True, graphs, nodes, width, depth)


def after(graphs: int, nodes: int, width: int, depth: int) -> Step:
    return convolved(False, graphs, nodes, width, depth)


if __name__ == "__main__":
    profiled(before, SIZES)
