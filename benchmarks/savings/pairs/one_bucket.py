"""DistributedDataParallel with one bucket for all gradients reduces when backward is over; the fix has small ones."""

from layers import Ranked
from parts import Step, profiled

SIZES = {"medium": (1024, 2048, 12), "large": (512, 4096, 8)}
FIX = {
    "question": "collective overlapped",
    "kind": "transform",
    "ranks": 2,
    "findings": [("OVL302", "loss.backward()")],
}
ALL, USUAL = 10_000, 25


def reduced_by(bucket: float, batch: int, width: int, depth: int) -> Step:
    training = Ranked(batch, width, depth, bucket)

    def step():
        loss = training.loss()
        loss.backward()
        training.optimizer.step()
        return loss.detach()

    return step


def before(batch: int, width: int, depth: int) -> Step:
    return reduced_by(ALL, batch, width, depth)


def after(batch: int, width: int, depth: int) -> Step:
    return reduced_by(USUAL, batch, width, depth)


if __name__ == "__main__":
    profiled(before, SIZES)
