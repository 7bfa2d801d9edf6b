"""The allocator's cache is emptied every step; the fix leaves it alone."""

import torch
from parts import Step, Training, collate, profiled

SIZES = {"medium": (2560, 2048, 1000)}
FIX = {"question": "allocator sync gone", "kind": "wait", "findings": [("SYN106", "torch.cuda.empty_cache()")]}


def before(batch: int, width: int, rows: int) -> Step:
    training = Training(batch, width)

    def step():
        collate(rows)
        loss = training.forward()
        training.backward(loss)
        torch.cuda.empty_cache()
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
