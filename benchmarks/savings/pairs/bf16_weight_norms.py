"""The norm of each weight of a large step in bfloat16 is read at its end. The fix keeps the norms on the device."""

from __future__ import annotations

from heavy import LowPrecision, mlp, rows
from parts import Step, collate, profiled

SIZES = {"few": (8192, 4096, 5, 1500), "many": (4096, 4096, 16, 1500)}
FIX = {
    "question": "all waits removed",
    "kind": "wait",
    "fresh": True,
    "newest": True,
    "contact": 2,
    "settle_ms": 300,
    "limited": True,
    "findings": [("SYN", "norm.item()")],
}


def weighed(read: bool, batch: int, width: int, depth: int, work: int) -> Step:
    fit, inputs, norms = LowPrecision(mlp(width, depth)), rows(batch, width), []

    def step():
        loss = fit.model(inputs).float().square().mean()
        fit.update(loss)
        norms.clear()
        for weight in fit.parameters:
            norm = weight.detach().norm()
            norms.append(norm.item() if read else norm)
        collate(work)
        return loss.detach()

    return step


def before(batch: int, width: int, depth: int, work: int) -> Step:
    return weighed(True, batch, width, depth, work)


def after(batch: int, width: int, depth: int, work: int) -> Step:
    return weighed(False, batch, width, depth, work)


if __name__ == "__main__":
    profiled(before, SIZES)
