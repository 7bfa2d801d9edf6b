"""A spiking network counts the spikes of each layer at each moment on the host. The fix leaves them on the device."""

from __future__ import annotations

import torch
from models import Fit
from parts import Step, profiled
from torch import nn

SIZES = {"small": (32, 128, 8), "large": (8192, 1024, 8)}
FIX = {
    "question": "all waits removed",
    "kind": "wait",
    "fresh": True,
    "newest": True,
    "contact": 9,
    "written": "2026-11-28, before any run",
    "findings": [("SYN", "fired.sum().item()")],
}


class Spiking(nn.Module):
    """Leaky neurons, which fire above 1; gradients go through a smooth step."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.weights = nn.Linear(width, width)

    def forward(self, given: torch.Tensor, level: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        level = 0.9 * level + self.weights(given)
        smooth = torch.sigmoid(4 * (level - 1))
        fired = (level > 1).float()
        return fired + smooth - smooth.detach(), level * (1 - fired)


def fired(read: bool, batch: int, width: int, moments: int) -> Step:
    torch.manual_seed(0)
    layers = nn.ModuleList(Spiking(width) for _ in range(2))
    fit = Fit(layers)
    given = torch.linspace(-4, 4, batch * width, device="cuda").reshape(batch, width)
    counts = []

    def step():
        counts.clear()
        levels = [torch.zeros_like(given) for _ in layers]
        total = torch.zeros_like(given)
        for _ in range(moments):
            signal = given
            for number, layer in enumerate(layers):
                signal, levels[number] = layer(signal, levels[number])
                fired = signal.detach()
                counts.append(fired.sum().item() if read else fired.sum())
            total = total + signal
        loss = (total / moments - 0.2).square().mean()
        fit.update(loss)
        return loss.detach()

    return step


def before(batch: int, width: int, moments: int) -> Step:
    return fired(True, batch, width, moments)


def after(batch: int, width: int, moments: int) -> Step:
    return fired(False, batch, width, moments)


if __name__ == "__main__":
    profiled(before, SIZES)
