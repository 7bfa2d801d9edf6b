"""Inference brings each batch of scores to the host and waits; the fix copies into pinned memory and looks later."""

import torch
from models import convnet, images
from parts import Step, collate, profiled

SIZES = {"medium": (256, 64, 6, 32, 2000)}
FIX = {
    "question": "copy made asynchronous",
    "kind": "transform",
    "held_out": True,
    "findings": [("SYN101", "scores.cpu()"), ("CPY201", "scores.cpu()")],
}
SCORES = 16_384


def before(batch: int, channels: int, depth: int, side: int, rows: int) -> Step:
    net, inputs = convnet(channels, depth, SCORES).to("cuda"), images(batch, side)

    @torch.no_grad()
    def step():
        scores = net(inputs)
        result = scores.cpu()
        collate(rows)
        return result[:1].sum()

    return step


def after(batch: int, channels: int, depth: int, side: int, rows: int) -> Step:
    net, inputs = convnet(channels, depth, SCORES).to("cuda"), images(batch, side)
    slots = [(torch.zeros(batch, SCORES, pin_memory=True), torch.cuda.Event()) for _ in range(2)]

    @torch.no_grad()
    def step():
        scores = net(inputs)
        result, copied = slots[0]
        result.copy_(scores, non_blocking=True)
        copied.record()
        slots.reverse()
        collate(rows)
        result, copied = slots[0]
        copied.synchronize()
        return result[:1].sum()

    return step


if __name__ == "__main__":
    profiled(before, SIZES)
