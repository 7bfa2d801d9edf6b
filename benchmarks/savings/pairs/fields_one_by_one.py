"""The fields of each sample are brought to the device one by one. The fix stacks them first."""

from __future__ import annotations

import torch
from parts import Step, Training, profiled

SIZES = {"few": (64, 64, 16), "many": (64, 64, 48)}
FIX = {
    "question": "many copies made one",
    "kind": "transform",
    "fresh": True,
    "newest": True,
    "contact": 1,
    "findings": [("CPY203", 'field.to("cuda")')],
}


def brought(stacked: bool, batch: int, width: int, count: int) -> Step:
    training = Training(batch, width)
    fields = [torch.linspace(0, 1, batch) * number for number in range(count)]

    def step():
        moved = torch.stack(fields).to("cuda") if stacked else torch.stack([field.to("cuda") for field in fields])
        loss = training.forward(training.inputs + moved.mean(0).unsqueeze(1))
        training.backward(loss)
        return moved.sum()

    return step


def before(batch: int, width: int, count: int) -> Step:
    return brought(False, batch, width, count)


def after(batch: int, width: int, count: int) -> Step:
    return brought(True, batch, width, count)


if __name__ == "__main__":
    profiled(before, SIZES)
