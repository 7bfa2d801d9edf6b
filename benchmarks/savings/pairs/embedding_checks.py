"""Each table of a recommender is asked whether its ids are known. The fix asks nothing."""

from __future__ import annotations

import torch
from models import Fit
from parts import Step, profiled
from torch import nn

SIZES = {"few": (256, 32, 6), "many": (256, 32, 24)}
FIX = {
    "question": "all waits removed",
    "kind": "wait",
    "fresh": True,
    "newest": True,
    "contact": 5,
    "findings": [("SYN", "(ids < IDS).all()")],
}
IDS = 1000


def looked_up(check: bool, batch: int, width: int, tables: int) -> Step:
    torch.manual_seed(0)
    towers = nn.ModuleList(nn.Embedding(IDS, width) for _ in range(tables))
    fit = Fit(nn.ModuleList([*towers, nn.Linear(tables * width, 1)]))
    columns = [torch.arange(batch, device="cuda") * (2 * number + 1) % IDS for number in range(tables)]

    def step():
        parts = []
        for table, ids in zip(fit.model, columns, strict=False):
            if check and not (ids < IDS).all():
                raise IndexError
            parts.append(table(ids))
        loss = fit.model[-1](torch.cat(parts, dim=1)).square().mean()
        fit.update(loss)
        return loss.detach()

    return step


def before(batch: int, width: int, tables: int) -> Step:
    return looked_up(True, batch, width, tables)


def after(batch: int, width: int, tables: int) -> Step:
    return looked_up(False, batch, width, tables)


if __name__ == "__main__":
    profiled(before, SIZES)
