"""The host reads the records of each batch itself. The fix has two workers do it."""

from __future__ import annotations

import torch
from models import Fit
from parts import Step, profiled
from torch import nn
from torch.utils.data import DataLoader, Dataset

SIZES = {"slow": (64, 96, 512, 4)}
FIX = {
    "question": "more workers",
    "kind": "transform",
    "fresh": True,
    "newest": True,
    "contact": 5,
    "settle_ms": 150,
    "asked": "two workers",
    "findings": [("OVL303", "")],
}


class Records(Dataset):
    """Lines of numbers with commas between them."""

    def __init__(self, fields: int) -> None:
        self.fields = fields

    def __len__(self) -> int:
        return 1 << 20

    def __getitem__(self, number: int) -> torch.Tensor:
        line = ",".join(str((number + field) % 97 / 97) for field in range(self.fields))
        return torch.tensor([float(field) for field in line.split(",")])


def fed(alone: bool, batch: int, fields: int, width: int, depth: int) -> Step:
    torch.manual_seed(0)
    layers = [layer for _ in range(depth) for layer in (nn.Linear(width, width), nn.ReLU())]
    fit = Fit(nn.Sequential(nn.Linear(fields, width), *layers))
    pinned = torch.cuda.is_available()
    coming = iter(DataLoader(Records(fields), batch_size=batch, num_workers=0 if alone else 2, pin_memory=pinned))

    def step():
        inputs = next(coming).to("cuda", non_blocking=True)
        fit.update(fit.model(inputs).square().mean())
        return inputs.shape[0]

    return step


def before(batch: int, fields: int, width: int, depth: int) -> Step:
    return fed(True, batch, fields, width, depth)


def after(batch: int, fields: int, width: int, depth: int) -> Step:
    return fed(False, batch, fields, width, depth)


if __name__ == "__main__":
    profiled(before, SIZES)
