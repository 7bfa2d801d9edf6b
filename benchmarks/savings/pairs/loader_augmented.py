"""One worker cuts, turns and tints pictures more slowly than they are used. The fix has three."""

from __future__ import annotations

import numpy as np
import torch
from models import Fit
from parts import Step, profiled
from torch import nn
from torch.utils.data import DataLoader, Dataset

SIZES = {"slow": (64, 64, 32)}
FIX = {
    "question": "more workers",
    "kind": "transform",
    "fresh": True,
    "newest": True,
    "contact": 9,
    "written": "2026-11-28, before any run",
    "settle_ms": 200,
    "asked": "two more workers",
    "findings": [("OVL303", "loader")],
}


class Pictures(Dataset):
    """Parts of a few pictures, mirrored and tinted by their number."""

    def __init__(self, side: int) -> None:
        self.side, whole = side, np.arange(3 * (side + 16) ** 2, dtype=np.uint32) * 7919 % 256
        self.whole = whole.astype(np.uint8).reshape(side + 16, side + 16, 3)

    def __len__(self) -> int:
        return 1 << 20

    def __getitem__(self, number: int) -> torch.Tensor:
        top, left = number % 16, number // 16 % 16
        part = self.whole[top : top + self.side, left : left + self.side].astype(np.float32) / 255
        part = part[:, ::-1] if number % 2 else part
        grey = (part * np.array([0.3, 0.6, 0.1], dtype=np.float32)).sum(-1)
        part = grey[..., None] + (0.8 + number % 5 / 10) * (part - grey[..., None])
        part = np.clip(part + number % 7 / 70, 0, 1)
        return torch.from_numpy(np.ascontiguousarray(((part - 0.45) / 0.22).transpose(2, 0, 1)))


def fed(few: bool, batch: int, side: int, channels: int) -> Step:
    torch.manual_seed(0)
    layers = [nn.Conv2d(3, channels, 4, 4)]
    for _ in range(4):
        mixed = nn.Conv2d(channels, channels, 5, padding=2, groups=channels)
        layers += [mixed, nn.BatchNorm2d(channels), nn.Conv2d(channels, channels, 1), nn.GELU()]
    fit = Fit(nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(channels, 10)))
    workers, pinned = 1 if few else 3, torch.cuda.is_available()
    loader = DataLoader(Pictures(side), batch, num_workers=workers, pin_memory=pinned)
    coming = iter(loader)

    def step():
        pictures = next(coming).to("cuda", non_blocking=True)
        fit.update(fit.model(pictures).logsumexp(1).mean())
        return pictures.shape[0]

    return step


def before(batch: int, side: int, channels: int) -> Step:
    return fed(True, batch, side, channels)


def after(batch: int, side: int, channels: int) -> Step:
    return fed(False, batch, side, channels)


if __name__ == "__main__":
    profiled(before, SIZES)
