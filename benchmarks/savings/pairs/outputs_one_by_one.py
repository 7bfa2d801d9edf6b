"""What the heads of a small network say is brought to the host one by one. The fix stacks it first."""

from __future__ import annotations

import torch
from parts import Step, profiled
from torch import nn

SIZES = {"many": (64, 128, 32), "some": (64, 128, 12)}
FIX = {
    "question": "many copies made one",
    "kind": "transform",
    "fresh": True,
    "newest": True,
    "contact": 3,
    "findings": [("CPY203", "output.cpu()"), ("SYN", "output.cpu()")],
}


def brought(single: bool, batch: int, width: int, heads: int) -> Step:
    torch.manual_seed(0)
    model = nn.ModuleList(nn.Linear(width, 8) for _ in range(heads)).to("cuda").requires_grad_(False)
    inputs = torch.linspace(-1, 1, batch * width, device="cuda").reshape(batch, width)

    def step():
        outputs = [head(inputs) for head in model]
        home = torch.stack([output.cpu() for output in outputs]) if single else torch.stack(outputs).cpu()
        return home[0]

    return step


def before(batch: int, width: int, heads: int) -> Step:
    return brought(True, batch, width, heads)


def after(batch: int, width: int, heads: int) -> Step:
    return brought(False, batch, width, heads)


if __name__ == "__main__":
    profiled(before, SIZES)
