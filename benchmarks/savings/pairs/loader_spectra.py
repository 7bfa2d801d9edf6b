"""One worker makes spectra more slowly than they are used. The fix has three."""

from __future__ import annotations

import torch
from models import Fit
from parts import Step, profiled
from torch import nn
from torch.utils.data import DataLoader, Dataset

SIZES = {"slow": (32, 2048, 24), "close": (32, 2048, 10)}
FIX = {
    "question": "more workers",
    "kind": "transform",
    "fresh": True,
    "newest": True,
    "contact": 3,
    "settle_ms": 250,
    "asked": "two more workers",
    "findings": [("OVL303", "loader")],
}


class Spectra(Dataset):
    """Signals, each the mean of some spectra of ``width`` numbers."""

    def __init__(self, width: int, count: int) -> None:
        self.width, self.count = width, count

    def __len__(self) -> int:
        return 1 << 20

    def __getitem__(self, number: int) -> torch.Tensor:
        signal = torch.sin(torch.arange(2 * self.width - 2) * (number % 16 / 16))
        return torch.stack([torch.fft.rfft(signal * (1 + part)).abs() for part in range(self.count)]).mean(0)


def fed(few: bool, batch: int, width: int, count: int) -> Step:
    torch.manual_seed(0)
    layers = [layer for _ in range(4) for layer in (nn.Linear(width, width), nn.ReLU())]
    fit = Fit(nn.Sequential(*layers))
    loader = DataLoader(
        Spectra(width, count), batch_size=batch, num_workers=1 if few else 3, pin_memory=torch.cuda.is_available()
    )
    coming = iter(loader)

    def step():
        inputs = next(coming).to("cuda", non_blocking=True)
        loss = fit.model(inputs).square().mean()
        fit.update(loss)
        return inputs.shape[0]

    return step


def before(batch: int, width: int, count: int) -> Step:
    return fed(True, batch, width, count)


def after(batch: int, width: int, count: int) -> Step:
    return fed(False, batch, width, count)


if __name__ == "__main__":
    profiled(before, SIZES)
