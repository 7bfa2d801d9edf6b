"""Loaders of batches that cost the host a known amount of work."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch
from parts import collate
from torch.utils.data import DataLoader, Dataset


class Rows(Dataset):
    """Samples of ``width`` numbers; each takes the work of ``cost`` rows."""

    def __init__(self, width: int, cost: int) -> None:
        self.width, self.cost = width, cost

    def __len__(self) -> int:
        return 1 << 20

    def __getitem__(self, number: int) -> torch.Tensor:
        collate(self.cost)
        return torch.full((self.width,), (number % 16) / 16)


def batches(batch: int, width: int, cost: int, workers: int, *, pinned: bool = True) -> Iterator[Any]:
    """Batches without end, from one epoch."""
    pin = pinned and torch.cuda.is_available()
    return iter(DataLoader(Rows(width, cost), batch_size=batch, num_workers=workers, pin_memory=pin))
