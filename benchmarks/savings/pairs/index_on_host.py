"""Rows are picked with an index that lives on the host; the fix moves the index to the device once."""

import torch
from parts import Step, Training, collate, profiled

SIZES = {"medium": (2560, 2048, 2500)}
FIX = {"question": "wait removed", "kind": "wait", "findings": [("SYN101", "training.inputs[order]")]}


def before(batch: int, width: int, rows: int) -> Step:
    training, order = Training(batch, width), torch.arange(batch).flip(0)

    def step():
        loss = training.forward(training.inputs[order])
        training.backward(loss)
        collate(rows)
        return loss

    return step


def after(batch: int, width: int, rows: int) -> Step:
    training, order = Training(batch, width), torch.arange(batch).flip(0).to("cuda")

    def step():
        loss = training.forward(training.inputs[order])
        training.backward(loss)
        collate(rows)
        return loss

    return step


if __name__ == "__main__":
    profiled(before, SIZES)
