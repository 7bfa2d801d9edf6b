"""Large experts in bfloat16 choose their tokens, and how many are lost is logged. The fix leaves it on the device."""

from __future__ import annotations

import torch
from heavy import LowPrecision, rows
from parts import Step, collate, profiled
from torch import nn

SIZES = {"heavy": (16384, 2048, 8, 4500)}
FIX = {
    "question": "wait removed",
    "kind": "wait",
    "fresh": True,
    "newest": True,
    "contact": 9,
    "written": "2026-11-28, before any run",
    "settle_ms": 300,
    "limited": True,
    "findings": [("SYN", "lost.item()")],
}


class Experts(nn.Module):
    """Each expert takes as many tokens, those that the gate likes most for it."""

    def __init__(self, tokens: int, width: int, many: int) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.gate, self.most = nn.Linear(width, many), 2 * tokens // many
        self.up = nn.Parameter(torch.randn(many, width, 2 * width) * width**-0.5)
        self.down = nn.Parameter(torch.randn(many, 2 * width, width) * width**-0.5)

    def forward(self, given: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        shares, chosen = self.gate(given).softmax(1).t().topk(self.most)
        said = torch.relu(given[chosen] @ self.up) @ self.down * shares[..., None]
        where = chosen.flatten()
        counts = torch.zeros(len(given), device="cuda").index_add(0, where, torch.ones_like(where, dtype=torch.float))
        return given.index_add(0, where, said.flatten(0, 1)), (counts == 0).sum()


def routed(read: bool, tokens: int, width: int, many: int, work: int) -> Step:
    fit, inputs, told = LowPrecision(Experts(tokens, width, many)), rows(tokens, width), []

    def step():
        values, lost = fit.model(inputs)
        loss = values.float().square().mean()
        told[:] = [lost.item() if read else lost]
        collate(work)
        fit.update(loss)
        return tokens

    return step


def before(tokens: int, width: int, many: int, work: int) -> Step:
    return routed(True, tokens, width, many, work)


def after(tokens: int, width: int, many: int, work: int) -> Step:
    return routed(False, tokens, width, many, work)


if __name__ == "__main__":
    profiled(before, SIZES)
