"""A pinned batch is copied, and the host waits for the copy; the fix passes ``non_blocking=True``."""

import torch
from parts import Step, Training, collate, profiled

SIZES = {"small": (256, 512, 3000), "medium": (2560, 2048, 2500), "large": (8192, 2048, 1000)}
FIX = {"question": "copy made asynchronous", "kind": "wait", "findings": [("SYN101", 'source.to("cuda")')]}


def before(batch: int, width: int, rows: int) -> Step:
    training, source = Training(batch, width), torch.ones(batch, width).pin_memory()

    def step():
        loss = training.forward(source.to("cuda"))
        training.backward(loss)
        collate(rows)
        return loss

    return step


def after(batch: int, width: int, rows: int) -> Step:
    training, source = Training(batch, width), torch.ones(batch, width).pin_memory()

    def step():
        loss = training.forward(source.to("cuda", non_blocking=True))
        training.backward(loss)
        collate(rows)
        return loss

    return step


if __name__ == "__main__":
    profiled(before, SIZES)
