"""``mode="reduce-overhead"`` runs without CUDA graphs: the function writes into its input. The fix writes outside."""

import torch
from blocks import blocks, rows
from parts import Step, profiled

SIZES = {"small": (64, 256, 12)}
FIX = {
    "question": "CUDA graph made",
    "kind": "transform",
    "fresh": True,
    "compiled": True,
    "findings": [("CMP703", "average.lerp_")],
}


def before(batch: int, width: int, depth: int) -> Step:
    model, inputs, average = blocks(width, depth).requires_grad_(False), rows(batch, width), rows(batch, width)

    @torch.compile(mode="reduce-overhead")
    def update(average: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
        hidden = model(x)
        average.lerp_(hidden, 0.01)
        return hidden.mean(0)

    def step():
        update(average, inputs)
        return average

    return step


def after(batch: int, width: int, depth: int) -> Step:
    model, inputs, average = blocks(width, depth).requires_grad_(False), rows(batch, width), rows(batch, width)

    @torch.compile(mode="reduce-overhead")
    def read(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        hidden = model(x)
        return hidden, hidden.mean(0)

    def step():
        hidden, _ = read(inputs)
        average.lerp_(hidden, 0.01)
        return average

    return step


if __name__ == "__main__":
    profiled(before, SIZES)
