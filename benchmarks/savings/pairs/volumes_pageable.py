"""Volumes lie in pageable memory, and their copies block; the fix pins them, once."""

from __future__ import annotations

import torch
from models import Fit
from parts import Step, collate, profiled
from torch import nn

SIZES = {"medium": (16, 64, 8, 800), "hosted": (2, 24, 8, 2500)}
FIX = {
    "question": "pageable made pinned",
    "kind": "transform",
    "fresh": True,
    "newest": True,
    "contact": 7,
    "written": "2026-11-26, before any run",
    "findings": [("CPY201", "volumes.to(")],
}


def scanned(pageable: bool, batch: int, side: int, channels: int, work: int) -> Step:
    torch.manual_seed(0)
    convolutions = [nn.Conv3d(1, channels, 3, padding=1), nn.ReLU(), nn.Conv3d(channels, channels, 3, padding=1)]
    fit = Fit(nn.Sequential(*convolutions, nn.AdaptiveAvgPool3d(1), nn.Flatten(), nn.Linear(channels, 2)))
    volumes = torch.linspace(-1, 1, batch * side**3).reshape(batch, 1, side, side, side)
    volumes = volumes if pageable else volumes.pin_memory()

    def step():
        loss = fit.model(volumes.to("cuda", non_blocking=True)).square().mean()
        fit.update(loss)
        collate(work)
        return loss.detach()

    return step


def before(batch: int, side: int, channels: int, work: int) -> Step:
    return scanned(True, batch, side, channels, work)


def after(batch: int, side: int, channels: int, work: int) -> Step:
    return scanned(False, batch, side, channels, work)


if __name__ == "__main__":
    profiled(before, SIZES)
