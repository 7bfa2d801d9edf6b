"""The loss of each large step in bfloat16 goes into a running mean on the host. The fix keeps it on the device."""

from __future__ import annotations

from heavy import LowPrecision, mlp, rows
from parts import Step, collate, profiled

SIZES = {"heavy": (8192, 4096, 7, 6000), "light": (8192, 4096, 10, 4000)}
FIX = {
    "question": "wait removed",
    "kind": "wait",
    "fresh": True,
    "newest": True,
    "contact": 5,
    "settle_ms": 150,
    "limited": True,
    "findings": [("SYN", "float(loss)")],
}


def averaged(read: bool, batch: int, width: int, depth: int, work: int) -> Step:
    fit, inputs, losses, mean = LowPrecision(mlp(width, depth)), rows(batch, width), [], 0.0

    def step():
        nonlocal mean
        loss = fit.model(inputs).float().square().mean()
        fit.update(loss)
        loss = loss.detach()
        if read:
            mean = 0.98 * mean + 0.02 * float(loss)
        else:
            losses[:] = [loss]
        collate(work)
        return loss

    return step


def before(batch: int, width: int, depth: int, work: int) -> Step:
    return averaged(True, batch, width, depth, work)


def after(batch: int, width: int, depth: int, work: int) -> Step:
    return averaged(False, batch, width, depth, work)


if __name__ == "__main__":
    profiled(before, SIZES)
