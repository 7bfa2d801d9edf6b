"""Every loss is checked on the host before backward; the fix gathers the answer on the device."""

import torch
from parts import Step, Training, collate, profiled

SIZES = {"medium": (2560, 2048, 2500), "large": (8192, 2048, 1000)}
FIX = {"question": "wait removed", "kind": "wait", "findings": [("SYN102", "loss.isnan()")]}


def before(batch: int, width: int, rows: int) -> Step:
    training = Training(batch, width)

    def step():
        loss = training.forward()
        if loss.isnan():
            raise FloatingPointError
        training.backward(loss)
        collate(rows)
        return loss

    return step


def after(batch: int, width: int, rows: int) -> Step:
    training, bad = Training(batch, width), torch.zeros((), dtype=torch.bool, device="cuda")

    def step():
        loss = training.forward()
        bad.logical_or_(loss.isnan())
        training.backward(loss)
        collate(rows)
        return loss

    return step


if __name__ == "__main__":
    profiled(before, SIZES)
