"""A metric picks rows by a boolean mask, whose size the host must know; the fix weighs them instead."""

import torch
from parts import Step, Training, collate, profiled

SIZES = {"medium": (2560, 2048, 2500), "large": (8192, 2048, 1000)}
FIX = {"question": "wait removed", "kind": "wait", "findings": [("SYN103", "training.inputs[:, 0][mask]")]}


def before(batch: int, width: int, rows: int) -> Step:
    training = Training(batch, width)

    def step():
        collate(rows)
        loss = training.forward()
        mask = training.targets < 5
        metric = training.inputs[:, 0][mask].sum() / mask.sum()
        training.backward(loss)
        return metric

    return step


def after(batch: int, width: int, rows: int) -> Step:
    training = Training(batch, width)

    def step():
        collate(rows)
        loss = training.forward()
        mask = training.targets < 5
        metric = torch.where(mask, training.inputs[:, 0], 0).sum() / mask.sum()
        training.backward(loss)
        return metric

    return step


if __name__ == "__main__":
    profiled(before, SIZES)
