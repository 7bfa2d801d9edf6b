"""Sequences of ever new lengths, and ``dynamic=False``: every fourth step compiles. The fix is ``dynamic=True``.

What it compiles to are PyTorch's own kernels, so that the many graphs of a measurement are compiled in seconds.
"""

import itertools

import torch
from blocks import blocks, rows
from parts import Step, profiled

SIZES = {"small": (256, 6)}
FIX = {
    "question": "compiled once",
    "kind": "transform",
    "fresh": True,
    "compiled": True,
    "findings": [("CMP701", "")],
}
STAY = 4
"""Steps of one length."""

torch._dynamo.config.recompile_limit = torch._dynamo.config.accumulated_recompile_limit = 1_000_000


def reading(width: int, depth: int, dynamic: bool) -> Step:
    model = blocks(width, depth).requires_grad_(False)
    pool, number = rows(4096, width), itertools.count()

    @torch.compile(dynamic=dynamic, backend="aot_eager")
    def read(words: torch.Tensor) -> torch.Tensor:
        return model(words).mean(0)

    def step():
        return read(pool[: 64 + next(number) // STAY % 4000])

    return step


def before(width: int, depth: int) -> Step:
    return reading(width, depth, dynamic=False)


def after(width: int, depth: int) -> Step:
    return reading(width, depth, dynamic=True)


if __name__ == "__main__":
    profiled(before, SIZES)
