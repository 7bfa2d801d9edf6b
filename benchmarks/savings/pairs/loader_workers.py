"""One worker makes batches more slowly than they are used; the fix has three."""

from feeding import batches
from models import Fit
from parts import Step, profiled
from torch import nn

SIZES = {"paced": (64, 1024, 300), "close": (64, 1024, 120)}
FIX = {
    "question": "more workers",
    "kind": "transform",
    "fresh": True,
    "settle_ms": 250,
    "asked": "two more workers",
    "findings": [("OVL303", "loader")],
}


def fed(workers: int, batch: int, width: int, cost: int) -> Step:
    fit = Fit(nn.Sequential(nn.Linear(width, width), nn.ReLU(), nn.Linear(width, 16)))
    loader = batches(batch, width, cost, workers)

    def step():
        inputs = next(loader).to("cuda", non_blocking=True)
        loss = fit.model(inputs).square().mean()
        fit.update(loss)
        return inputs.shape[0]

    return step


def before(batch: int, width: int, cost: int) -> Step:
    return fed(1, batch, width, cost)


def after(batch: int, width: int, cost: int) -> Step:
    return fed(3, batch, width, cost)


if __name__ == "__main__":
    profiled(before, SIZES)
