"""One worker parses samples more slowly than they are used. The fix has three."""

from __future__ import annotations

import json

import torch
from models import Fit
from parts import Step, profiled
from torch import nn
from torch.utils.data import DataLoader, Dataset

SIZES = {"slow": (128, 256, 512, 4)}
FIX = {
    "question": "more workers",
    "kind": "transform",
    "fresh": True,
    "newest": True,
    "contact": 5,
    "settle_ms": 200,
    "asked": "two more workers",
    "findings": [("OVL303", "loader")],
}


class Samples(Dataset):
    """Lists of numbers as JSON."""

    def __init__(self, fields: int) -> None:
        self.lines = [json.dumps([(number + field) % 97 / 97 for field in range(fields)]) for number in range(16)]

    def __len__(self) -> int:
        return 1 << 20

    def __getitem__(self, number: int) -> torch.Tensor:
        return torch.tensor(json.loads(self.lines[number % 16]))


def fed(few: bool, batch: int, fields: int, width: int, depth: int) -> Step:
    torch.manual_seed(0)
    layers = [layer for _ in range(depth) for layer in (nn.Linear(width, width), nn.ReLU())]
    fit = Fit(nn.Sequential(nn.Linear(fields, width), *layers))
    loader = DataLoader(
        Samples(fields), batch_size=batch, num_workers=1 if few else 3, pin_memory=torch.cuda.is_available()
    )
    coming = iter(loader)

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
