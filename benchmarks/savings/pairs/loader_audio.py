"""The host makes the bands of each recorded sound itself. The fix has two workers do it."""

from __future__ import annotations

import numpy as np
import torch
from models import Fit
from parts import Step, profiled
from torch import nn
from torch.utils.data import DataLoader, Dataset

SIZES = {"slow": (32, 64, 128)}
FIX = {
    "question": "more workers",
    "kind": "transform",
    "fresh": True,
    "newest": True,
    "contact": 9,
    "written": "2026-11-28, before any run",
    "settle_ms": 150,
    "asked": "two workers",
    "findings": [("OVL303", "")],
}
BANDS, FRAME = 40, 400


class Sounds(Dataset):
    """The logarithms of bands of each frame of a sound."""

    def __init__(self, frames: int) -> None:
        self.frames, self.window = frames, np.hanning(FRAME).astype(np.float32)
        self.edges = np.arange(BANDS) * (FRAME // 2) // BANDS

    def __len__(self) -> int:
        return 1 << 20

    def __getitem__(self, number: int) -> torch.Tensor:
        sound = np.sin(np.arange(FRAME + (self.frames - 1) * FRAME // 2) * (number % 32 + 1) / 50)
        starts = np.arange(self.frames)[:, None] * (FRAME // 2) + np.arange(FRAME)
        power = np.abs(np.fft.rfft(sound[starts] * self.window)) ** 2
        return torch.from_numpy(np.log(np.add.reduceat(power, self.edges, axis=1) + 1e-6).astype(np.float32))


class Listener(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.reader, self.head = nn.GRU(BANDS, width, batch_first=True), nn.Linear(width, 12)

    def forward(self, sounds: torch.Tensor) -> torch.Tensor:
        return self.head(self.reader(sounds)[0][:, -1])


def fed(alone: bool, batch: int, frames: int, width: int) -> Step:
    fit, labels = Fit(Listener(width)), torch.arange(batch, device="cuda") % 12
    workers, pinned = 0 if alone else 2, torch.cuda.is_available()
    coming = iter(DataLoader(Sounds(frames), batch, num_workers=workers, pin_memory=pinned))

    def step():
        sounds = next(coming).to("cuda", non_blocking=True)
        fit.update(nn.functional.cross_entropy(fit.model(sounds), labels))
        return batch

    return step


def before(batch: int, frames: int, width: int) -> Step:
    return fed(True, batch, frames, width)


def after(batch: int, frames: int, width: int) -> Step:
    return fed(False, batch, frames, width)


if __name__ == "__main__":
    profiled(before, SIZES)
