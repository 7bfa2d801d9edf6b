"""A recommender's id columns are copied one by one; the fix stacks them on the host and copies once."""

import torch
from models import Fit
from parts import Step, collate, profiled
from torch import nn

SIZES = {"medium": (4096, 32, 512, 1000)}
FIX = {
    "question": "many copies made one",
    "kind": "transform",
    "held_out": True,
    "findings": [("CPY203", 'column.to("cuda")')],
}
ROWS = 10_000


class Recommender(nn.Module):
    def __init__(self, columns: int, width: int) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.table = nn.Embedding(ROWS, width)
        self.top = nn.Sequential(nn.Linear(columns * width, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU())
        self.score = nn.Linear(width, 1)

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        """From ids (columns, batch)."""
        return self.score(self.top(self.table(ids).transpose(0, 1).flatten(1)))


def before(batch: int, columns: int, width: int, rows: int) -> Step:
    fit = Fit(Recommender(columns, width // 8))
    ids = [torch.arange(batch) * (number + 1) % ROWS for number in range(columns)]

    def step():
        moved = torch.stack([column.to("cuda") for column in ids])
        fit.update(fit.model(moved).square().mean())
        collate(rows)
        return moved

    return step


def after(batch: int, columns: int, width: int, rows: int) -> Step:
    fit = Fit(Recommender(columns, width // 8))
    ids = [torch.arange(batch) * (number + 1) % ROWS for number in range(columns)]

    def step():
        moved = torch.stack(ids).to("cuda")
        fit.update(fit.model(moved).square().mean())
        collate(rows)
        return moved

    return step


if __name__ == "__main__":
    profiled(before, SIZES)
