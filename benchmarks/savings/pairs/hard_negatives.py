"""Hard examples are looked up by ``nonzero``; the fix weighs the others with zero."""

import torch
from models import Fit, convnet, images
from parts import Step, collate, profiled
from torch import nn

SIZES = {"medium": (256, 32, 6, 64, 1500), "hosted": (32, 16, 30, 16, 500)}
FIX = {"question": "wait removed", "kind": "wait", "held_out": True, "findings": [("SYN103", "hard.nonzero()")]}


class Task(Fit):
    def __init__(self, batch: int, channels: int, depth: int, side: int) -> None:
        super().__init__(convnet(channels, depth))
        self.images, self.labels = images(batch, side), torch.arange(batch, device="cuda") % 10

    def losses(self) -> torch.Tensor:
        return nn.functional.cross_entropy(self.model(self.images), self.labels, reduction="none")


def before(batch: int, channels: int, depth: int, side: int, rows: int) -> Step:
    task = Task(batch, channels, depth, side)

    def step():
        losses = task.losses()
        hard = losses.detach() > 0
        task.update(losses[hard.nonzero().flatten()].sum())
        collate(rows)
        return hard.sum()

    return step


def after(batch: int, channels: int, depth: int, side: int, rows: int) -> Step:
    task = Task(batch, channels, depth, side)

    def step():
        losses = task.losses()
        hard = losses.detach() > 0
        task.update((losses * hard).sum())
        collate(rows)
        return hard.sum()

    return step


if __name__ == "__main__":
    profiled(before, SIZES)
