"""The targets of each batch are copied from pageable memory, and the host waits. The fix copies from pinned memory."""

from __future__ import annotations

import torch
from models import Fit, convnet, images
from parts import Step, collate, profiled

SIZES = {"hosted": (32, 16, 32, 5, 500), "medium": (256, 32, 64, 6, 3000)}
FIX = {
    "question": "copy made asynchronous",
    "kind": "transform",
    "fresh": True,
    "newest": True,
    "contact": 5,
    "findings": [("SYN", 'targets.to("cuda"'), ("CPY2", 'targets.to("cuda"')],
}


def compared(wait: bool, batch: int, side: int, channels: int, depth: int, work: int) -> Step:
    fit, inputs, targets = Fit(convnet(channels, depth)), images(batch, side), torch.arange(batch) % 10
    targets = targets if wait else targets.pin_memory()

    def step():
        loss = torch.nn.functional.cross_entropy(fit.model(inputs), targets.to("cuda", non_blocking=not wait))
        fit.update(loss)
        collate(work)
        return loss.detach()

    return step


def before(batch: int, side: int, channels: int, depth: int, work: int) -> Step:
    return compared(True, batch, side, channels, depth, work)


def after(batch: int, side: int, channels: int, depth: int, work: int) -> Step:
    return compared(False, batch, side, channels, depth, work)


if __name__ == "__main__":
    profiled(before, SIZES)
