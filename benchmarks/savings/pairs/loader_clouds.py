"""A loader hands out clouds of points, and each is moved by itself. The fix joins them and moves them once."""

from __future__ import annotations

import torch
from models import Fit
from parts import Step, profiled
from torch import nn
from torch.utils.data import DataLoader, Dataset

SIZES = {"some": (32, 64, 128)}
FIX = {
    "question": "many copies made one",
    "kind": "transform",
    "fresh": True,
    "newest": True,
    "contact": 9,
    "written": "2026-11-28, before any run",
    "settle_ms": 100,
    "findings": [("CPY203", 'cloud.to("cuda")')],
}


class Clouds(Dataset):
    """Points in space, more in one cloud than in another."""

    def __init__(self, points: int) -> None:
        self.clouds = [torch.linspace(-1, 1, 3 * (points + 5 * more)).reshape(-1, 3) for more in range(16)]

    def __len__(self) -> int:
        return 1 << 20

    def __getitem__(self, number: int) -> torch.Tensor:
        return self.clouds[number % 16]


def told(joined: bool, batch: int, points: int, width: int) -> Step:
    torch.manual_seed(0)
    each = nn.Sequential(nn.Linear(3, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU())
    fit = Fit(nn.ModuleList([each, nn.Linear(width, 8)]))
    labels = torch.arange(batch, device="cuda") % 8
    coming = iter(DataLoader(Clouds(points), batch, num_workers=2, collate_fn=list))

    def step():
        clouds = next(coming)
        points = torch.cat(clouds).to("cuda") if joined else torch.cat([cloud.to("cuda") for cloud in clouds])
        parts = fit.model[0](points).split([len(cloud) for cloud in clouds])
        largest = torch.stack([part.amax(0) for part in parts])
        loss = nn.functional.cross_entropy(fit.model[1](largest), labels)
        fit.update(loss)
        return loss.detach()

    return step


def before(batch: int, points: int, width: int) -> Step:
    return told(False, batch, points, width)


def after(batch: int, points: int, width: int) -> Step:
    return told(True, batch, points, width)


if __name__ == "__main__":
    profiled(before, SIZES)
