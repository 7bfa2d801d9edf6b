"""The layers of a model are compiled, and its loss is read each step. The fix adds it up on the device."""

from __future__ import annotations

import torch
from models import Fit
from parts import Step, collate, profiled
from torch import nn

SIZES = {"medium": (8192, 1024, 4, 4000)}
FIX = {
    "question": "wait removed",
    "kind": "wait",
    "fresh": True,
    "newest": True,
    "contact": 9,
    "written": "2026-11-28, before any run",
    "findings": [("SYN", "loss.item()")],
}


class Layer(nn.Module):
    """A gated product with a norm before."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.scale = nn.Parameter(torch.ones(width))
        self.up, self.gate, self.down = (nn.Linear(width, width, bias=False) for _ in range(3))

    def forward(self, given: torch.Tensor) -> torch.Tensor:
        normed = given * (given.square().mean(1, keepdim=True) + 1e-6).rsqrt() * self.scale
        return given + self.down(nn.functional.silu(self.gate(normed)) * self.up(normed))


def summed(read: bool, batch: int, width: int, depth: int, work: int) -> Step:
    torch.manual_seed(0)
    fit = Fit(nn.Sequential(*(Layer(width) for _ in range(depth))))
    model = nn.Sequential(*(torch.compile(layer) for layer in fit.model))
    inputs = torch.linspace(-1, 1, batch * width, device="cuda").reshape(batch, width)
    seen, kept = [0.0], torch.zeros((), device="cuda")

    def step():
        loss = nn.functional.huber_loss(model(inputs), inputs.flip(0))
        fit.update(loss)
        if read:
            seen[0] += loss.item()
        else:
            kept.add_(loss.detach())
        collate(work)
        return loss.detach()

    return step


def before(batch: int, width: int, depth: int, work: int) -> Step:
    return summed(True, batch, width, depth, work)


def after(batch: int, width: int, depth: int, work: int) -> Step:
    return summed(False, batch, width, depth, work)


if __name__ == "__main__":
    profiled(before, SIZES)
