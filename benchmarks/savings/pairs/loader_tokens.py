"""One worker makes word numbers of texts more slowly than they are used. The fix has three."""

from __future__ import annotations

import zlib

import torch
from models import Fit
from parts import Step, profiled
from torch import nn
from torch.utils.data import DataLoader, Dataset

SIZES = {"slow": (64, 256, 128)}
FIX = {
    "question": "more workers",
    "kind": "transform",
    "fresh": True,
    "newest": True,
    "contact": 7,
    "written": "2026-11-26, before any run",
    "settle_ms": 200,
    "asked": "two more workers",
    "findings": [("OVL303", "loader")],
}
WORDS = 1000


class Texts(Dataset):
    """Word numbers by a checksum of each word."""

    def __init__(self, length: int) -> None:
        self.texts = [" ".join(f"w{(number * 31 + word) % 97}" for word in range(length)) for number in range(16)]

    def __len__(self) -> int:
        return 1 << 20

    def __getitem__(self, number: int) -> torch.Tensor:
        return torch.tensor([zlib.crc32(word.encode()) % WORDS for word in self.texts[number % 16].split()])


def fed(few: bool, batch: int, length: int, width: int) -> Step:
    torch.manual_seed(0)
    fit = Fit(nn.Sequential(nn.Embedding(WORDS, width), nn.Linear(width, width), nn.ReLU(), nn.Linear(width, WORDS)))
    workers = 1 if few else 3
    loader = DataLoader(Texts(length), batch, num_workers=workers, pin_memory=torch.cuda.is_available())
    coming = iter(loader)

    def step():
        text = next(coming).to("cuda", non_blocking=True)
        loss = nn.functional.cross_entropy(fit.model(text).flatten(0, 1), text.flatten())
        fit.update(loss)
        return batch

    return step


def before(batch: int, length: int, width: int) -> Step:
    return fed(True, batch, length, width)


def after(batch: int, length: int, width: int) -> Step:
    return fed(False, batch, length, width)


if __name__ == "__main__":
    profiled(before, SIZES)
