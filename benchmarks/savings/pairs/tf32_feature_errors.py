"""The error of each feature of a large TF32 autoencoder goes to NumPy each step. The fix looks a step later."""

from __future__ import annotations

import numpy as np
import torch
from heavy import allow_tf32
from models import Fit
from parts import Step, collate, profiled
from torch import nn

SIZES = {"heavy": (8192, 4096, 3500)}
FIX = {
    "question": "copy made asynchronous",
    "kind": "transform",
    "fresh": True,
    "newest": True,
    "contact": 9,
    "written": "2026-11-28, before any run",
    "settle_ms": 300,
    "limited": True,
    "findings": [("SYN", "errors.cpu()"), ("CPY2", "errors.cpu()")],
}


class Rebuilding(Fit):
    def __init__(self, batch: int, width: int) -> None:
        allow_tf32()
        torch.manual_seed(0)
        narrow = [nn.Linear(width, width), nn.ELU(), nn.Linear(width, width // 2), nn.ELU()]
        super().__init__(nn.Sequential(*narrow, nn.Linear(width // 2, width), nn.ELU(), nn.Linear(width, width)))
        self.inputs = torch.linspace(-1, 1, batch * width, device="cuda").reshape(batch, width)

    def errors(self) -> torch.Tensor:
        """One of each feature, when the update is on its way."""
        squared = (self.model(self.inputs) - self.inputs).square()
        self.update(squared.mean())
        return squared.detach().mean(0)


def worst(errors: np.ndarray, work: int) -> int:
    collate(work)
    return int(errors.argmax())


def before(batch: int, width: int, work: int) -> Step:
    fit = Rebuilding(batch, width)

    def step():
        errors = fit.errors()
        worst(errors.cpu().numpy(), work)
        return batch

    return step


def after(batch: int, width: int, work: int) -> Step:
    fit = Rebuilding(batch, width)
    slots = [(torch.zeros(width, pin_memory=True), torch.cuda.Event()) for _ in range(2)]

    def step():
        errors, copied = slots[0]
        errors.copy_(fit.errors(), non_blocking=True)
        copied.record()
        slots.reverse()
        errors, copied = slots[0]
        copied.synchronize()
        worst(errors.numpy(), work)
        return batch

    return step


if __name__ == "__main__":
    profiled(before, SIZES)
