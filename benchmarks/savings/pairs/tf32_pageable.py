"""A batch is copied from pageable memory before a large TF32 step; the fix copies from pinned memory."""

import torch
from heavy import allow_tf32, mlp
from models import Fit
from parts import Step, profiled

SIZES = {"wide": (16384, 4096, 3), "deep": (8192, 4096, 8)}
FIX = {
    "question": "pinned and asynchronous",
    "kind": "transform",
    "fresh": True,
    "settle_ms": 250,
    "limited": True,
    "findings": [("CPY201", "batch.to("), ("SYN101", "batch.to(")],
}


def fed(pinned: bool, rows: int, width: int, depth: int) -> Step:
    allow_tf32()
    fit = Fit(mlp(width, depth))
    batch = torch.linspace(-1, 1, rows * width).reshape(rows, width)
    batch = batch.pin_memory() if pinned else batch

    def step():
        inputs = batch.to("cuda", non_blocking=pinned)
        loss = fit.model(inputs).square().mean()
        fit.update(loss)
        return loss.detach()

    return step


def before(rows: int, width: int, depth: int) -> Step:
    return fed(False, rows, width, depth)


def after(rows: int, width: int, depth: int) -> Step:
    return fed(True, rows, width, depth)


if __name__ == "__main__":
    profiled(before, SIZES)
