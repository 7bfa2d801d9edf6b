"""A large step in bfloat16 logs its loss with ``.item()`` while the host prepares the next; the fix keeps it there."""

from heavy import LowPrecision, mlp, rows
from parts import Step, collate, profiled

SIZES = {"light": (8192, 4096, 6, 1500), "heavy": (8192, 4096, 6, 6000)}
FIX = {
    "question": "wait removed",
    "kind": "wait",
    "fresh": True,
    "settle_ms": 250,
    "limited": True,
    "findings": [("SYN102", "loss.item()")],
}


def logged(read: bool, batch: int, width: int, depth: int, work: int) -> Step:
    fit, inputs, log = LowPrecision(mlp(width, depth)), rows(batch, width), []

    def step():
        collate(work)
        loss = fit.model(inputs).float().square().mean()
        fit.update(loss)
        log[:] = [loss.item() if read else loss.detach()]
        return log[0]

    return step


def before(batch: int, width: int, depth: int, work: int) -> Step:
    return logged(True, batch, width, depth, work)


def after(batch: int, width: int, depth: int, work: int) -> Step:
    return logged(False, batch, width, depth, work)


if __name__ == "__main__":
    profiled(before, SIZES)
