"""The noise of each denoising step is drawn on the host and moved. The fix draws it on the device."""

from __future__ import annotations

import torch
from models import images
from parts import Step, profiled
from torch import nn

SIZES = {"small": (32, 32, 32), "large": (256, 48, 64)}
FIX = {
    "question": "copy gone",
    "kind": "transform",
    "fresh": True,
    "newest": True,
    "contact": 9,
    "written": "2026-11-28, before any run",
    "findings": [
        ("SYN", "torch.randn("),
        ("CPY2", "torch.randn("),
    ],
}


class Denoiser(nn.Module):
    def __init__(self, channels: int) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.first, self.last = nn.Conv2d(3, channels, 3, padding=1), nn.Conv2d(channels, 3, 3, padding=1)
        self.parts = nn.ModuleList(
            nn.Sequential(nn.GroupNorm(8, channels), nn.SiLU(), nn.Conv2d(channels, channels, 3, padding=1))
            for _ in range(6)
        )

    def forward(self, noisy: torch.Tensor) -> torch.Tensor:
        hidden = self.first(noisy)
        for part in self.parts:
            hidden = hidden + part(hidden)
        return self.last(hidden)


def denoised(on_host: bool, batch: int, side: int, channels: int) -> Step:
    model, pictures = Denoiser(channels).to("cuda"), images(batch, side)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
    share = torch.linspace(0.1, 0.9, batch, device="cuda")[:, None, None, None]
    torch.manual_seed(0)

    def step():
        noise = torch.randn(pictures.shape).to("cuda") if on_host else torch.randn(pictures.shape, device="cuda")
        noisy = share.sqrt() * pictures + (1 - share).sqrt() * noise
        loss = nn.functional.mse_loss(model(noisy), noise)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return loss.detach()

    return step


def before(batch: int, side: int, channels: int) -> Step:
    return denoised(True, batch, side, channels)


def after(batch: int, side: int, channels: int) -> Step:
    return denoised(False, batch, side, channels)


if __name__ == "__main__":
    profiled(before, SIZES)
