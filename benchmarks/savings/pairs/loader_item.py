"""A step behind a loader logs its loss with ``.item()``: a slow loader leaves nothing to gain, a fast one does."""

import torch
from feeding import batches
from models import Fit
from parts import Step, collate, profiled
from torch import nn

SIZES = {"paced": (64, 1024, 300, 2, 500), "fed": (256, 4096, 1, 3, 1500)}
FIX = {
    "question": "wait removed",
    "kind": "wait",
    "fresh": True,
    "settle_ms": 250,
    "findings": [("SYN102", "loss.item()")],
}


def logged(read: bool, batch: int, width: int, cost: int, workers: int, work: int) -> Step:
    torch.manual_seed(0)
    fit = Fit(nn.Sequential(nn.Linear(width, width), nn.ReLU(), nn.Linear(width, width)))
    loader, log = batches(batch, width, cost, workers), []

    def step():
        inputs = next(loader).to("cuda", non_blocking=True)
        collate(work)
        loss = fit.model(inputs).square().mean()
        fit.update(loss)
        log[:] = [loss.item() if read else loss.detach()]
        return log[0]

    return step


def before(batch: int, width: int, cost: int, workers: int, work: int) -> Step:
    return logged(True, batch, width, cost, workers, work)


def after(batch: int, width: int, cost: int, workers: int, work: int) -> Step:
    return logged(False, batch, width, cost, workers, work)


if __name__ == "__main__":
    profiled(before, SIZES)
