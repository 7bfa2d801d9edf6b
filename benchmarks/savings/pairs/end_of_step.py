"""Every step ends with ``torch.cuda.synchronize()``, to be timed; the fix leaves it out."""

import torch
from parts import Step, Training, collate, profiled

SIZES = {"small": (256, 512, 3000), "medium": (2560, 2048, 2500), "large": (8192, 2048, 1000)}
FIX = {"question": "wait removed", "kind": "wait", "findings": [("SYN105", "torch.cuda.synchronize()")]}


def before(batch: int, width: int, rows: int) -> Step:
    training = Training(batch, width)

    def step():
        collate(rows)
        loss = training.forward()
        training.backward(loss)
        torch.cuda.synchronize()
        return loss

    return step


def after(batch: int, width: int, rows: int) -> Step:
    training = Training(batch, width)

    def step():
        collate(rows)
        loss = training.forward()
        training.backward(loss)
        return loss

    return step


if __name__ == "__main__":
    profiled(before, SIZES)
