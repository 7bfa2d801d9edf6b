"""A large step in bfloat16 counts its right answers on the host. The fix adds them up on the device."""

from __future__ import annotations

import torch
from heavy import LowPrecision, mlp, rows
from parts import Step, collate, profiled

SIZES = {"light": (8192, 4096, 8, 2000), "heavy": (8192, 4096, 5, 6000)}
FIX = {
    "question": "wait removed",
    "kind": "wait",
    "fresh": True,
    "newest": True,
    "contact": 1,
    "settle_ms": 250,
    "limited": True,
    "findings": [("SYN", "right.item()")],
}


def counted(read: bool, batch: int, width: int, depth: int, work: int) -> Step:
    fit, inputs = LowPrecision(mlp(width, depth)), rows(batch, width)
    labels, seen = torch.arange(batch, device="cuda") % 16, []

    def step():
        scores = fit.model(inputs).float()
        fit.update(torch.nn.functional.cross_entropy(scores, labels))
        right = (scores.argmax(1) == labels).sum()
        seen[:] = [right.item() if read else right]
        collate(work)
        return seen[0]

    return step


def before(batch: int, width: int, depth: int, work: int) -> Step:
    return counted(True, batch, width, depth, work)


def after(batch: int, width: int, depth: int, work: int) -> Step:
    return counted(False, batch, width, depth, work)


if __name__ == "__main__":
    profiled(before, SIZES)
