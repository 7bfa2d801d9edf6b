"""Pinned image batches are copied in line with the compute; the fix copies them a step early on a side stream."""

import torch
from models import Fit, convnet, images
from parts import Step, profiled

SIZES = {"medium": (512, 32, 6, 64)}
FIX = {
    "question": "prefetch",
    "kind": "transform",
    "held_out": True,
    "findings": [("OVL301", 'pinned.to("cuda", non_blocking=True)')],
}


def before(batch: int, channels: int, depth: int, side: int) -> Step:
    fit, pinned = Fit(convnet(channels, depth)), images(batch, side).cpu().pin_memory()

    def step():
        moved = pinned.to("cuda", non_blocking=True)
        loss = fit.model(moved).square().mean()
        fit.update(loss)
        return loss

    return step


def after(batch: int, channels: int, depth: int, side: int) -> Step:
    fit, pinned = Fit(convnet(channels, depth)), images(batch, side).cpu().pin_memory()
    side_stream, coming = torch.cuda.Stream(), []

    def fetch():
        with torch.cuda.stream(side_stream):
            coming.append(pinned.to("cuda", non_blocking=True))

    fetch()

    def step():
        torch.cuda.current_stream().wait_stream(side_stream)
        moved = coming.pop()
        moved.record_stream(torch.cuda.current_stream())
        fetch()
        loss = fit.model(moved).square().mean()
        fit.update(loss)
        return loss

    return step


if __name__ == "__main__":
    profiled(before, SIZES)
