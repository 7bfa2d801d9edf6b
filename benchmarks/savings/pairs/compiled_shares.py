"""A compiled mixture logs its gates as a list, and its graph ends there. The fix logs the tensor."""

from __future__ import annotations

import torch
from parts import Step, profiled
from torch import nn

SIZES = {"small": (128, 256, 4)}
FIX = {
    "question": "one graph",
    "kind": "transform",
    "fresh": True,
    "newest": True,
    "contact": 9,
    "written": "2026-11-28, before any run",
    "compiled": True,
    "findings": [
        ("CMP702", "shares.mean(0).tolist()"),
        ("SYN102", "shares.mean(0).tolist()"),
    ],
}


class Mixture(nn.Module):
    def __init__(self, width: int, many: int) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.gate, self.parts = nn.Linear(width, many), nn.ModuleList(nn.Linear(width, width) for _ in range(many))

    def forward(self, given: torch.Tensor, shares: torch.Tensor) -> torch.Tensor:
        mixed = torch.zeros_like(given)
        for number, part in enumerate(self.parts):
            mixed = mixed + shares[:, number : number + 1] * torch.tanh(part(given))
        return mixed


def mixed(read: bool, batch: int, width: int, many: int) -> Step:
    model, log = Mixture(width, many).to("cuda"), {}
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    inputs = torch.linspace(-1, 1, batch * width, device="cuda").reshape(batch, width)

    @torch.compile
    def loss_of(given: torch.Tensor) -> torch.Tensor:
        shares = model.gate(given).softmax(1)
        if read:
            log["shares"] = shares.mean(0).tolist()
        else:
            log["shares"] = shares.mean(0).detach()
        return (model(given, shares) - given).square().mean()

    def step():
        optimizer.zero_grad()
        loss = loss_of(inputs)
        loss.backward()
        optimizer.step()
        return loss.detach()

    return step


def before(batch: int, width: int, many: int) -> Step:
    return mixed(True, batch, width, many)


def after(batch: int, width: int, many: int) -> Step:
    return mixed(False, batch, width, many)


if __name__ == "__main__":
    profiled(before, SIZES)
