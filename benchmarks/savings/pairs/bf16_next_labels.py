"""The labels of the next batch are moved after each large step in bfloat16, and the host waits. The fix copies from
pinned memory and does not."""

from __future__ import annotations

import torch
from heavy import LowPrecision, mlp, rows
from parts import Step, collate, profiled

SIZES = {"heavy": (8192, 4096, 5, 5000), "light": (8192, 4096, 8, 3000)}
FIX = {
    "question": "copy made asynchronous",
    "kind": "transform",
    "fresh": True,
    "newest": True,
    "contact": 3,
    "settle_ms": 300,
    "limited": True,
    "findings": [("SYN", 'labels.to("cuda"'), ("CPY2", 'labels.to("cuda"')],
}


def labelled(wait: bool, batch: int, width: int, depth: int, work: int) -> Step:
    fit, inputs = LowPrecision(mlp(width, depth)), rows(batch, width)
    labels = torch.arange(batch) % 16
    labels = labels if wait else labels.pin_memory()
    coming = labels.to("cuda")

    def step():
        nonlocal coming
        loss = torch.nn.functional.cross_entropy(fit.model(inputs).float(), coming)
        fit.update(loss)
        coming = labels.to("cuda", non_blocking=not wait)
        collate(work)
        return loss.detach()

    return step


def before(batch: int, width: int, depth: int, work: int) -> Step:
    return labelled(True, batch, width, depth, work)


def after(batch: int, width: int, depth: int, work: int) -> Step:
    return labelled(False, batch, width, depth, work)


if __name__ == "__main__":
    profiled(before, SIZES)
