"""Image batches lie in pageable memory; the fix pins them, once."""

import torch
from models import Fit, convnet, images
from parts import Step, collate, profiled

SIZES = {"medium": (256, 32, 6, 64, 1000), "hosted": (64, 16, 20, 32, 1000)}
FIX = {
    "question": "pageable made pinned",
    "kind": "transform",
    "held_out": True,
    "findings": [("CPY201", 'batch_of.to("cuda", non_blocking=True)')],
}


def trained_from(batch_of: torch.Tensor, channels: int, depth: int, rows: int) -> Step:
    fit = Fit(convnet(channels, depth))

    def step():
        moved = batch_of.to("cuda", non_blocking=True)
        loss = fit.model(moved).square().mean()
        fit.update(loss)
        collate(rows)
        return loss

    return step


def before(batch: int, channels: int, depth: int, side: int, rows: int) -> Step:
    return trained_from(images(batch, side).cpu(), channels, depth, rows)


def after(batch: int, channels: int, depth: int, side: int, rows: int) -> Step:
    return trained_from(images(batch, side).cpu().pin_memory(), channels, depth, rows)


if __name__ == "__main__":
    profiled(before, SIZES)
