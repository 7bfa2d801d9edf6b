"""Boxes go to the host to be scaled and back; the fix scales them where they are."""

from models import Fit, convnet, images
from parts import Step, collate, profiled

SIZES = {"medium": (256, 32, 6, 64, 1500)}
FIX = {
    "question": "round trip kept on the device",
    "kind": "transform",
    "held_out": True,
    "findings": [
        ("CPY204", 'scaled.to("cuda")'),
        ("SYN101", "found.cpu()"),
        ("SYN101", 'scaled.to("cuda")'),
        ("CPY201", "found.cpu()"),
        ("CPY201", 'scaled.to("cuda")'),
    ],
}
BOXES = 4096


def before(batch: int, channels: int, depth: int, side: int, rows: int) -> Step:
    fit, inputs = Fit(convnet(channels, depth, BOXES)), images(batch, side)

    def step():
        boxes = fit.model(inputs)
        found = boxes.detach()
        scaled = found.cpu() * 2
        loss = scaled.to("cuda").square().mean()
        fit.update(loss + boxes.square().mean())
        collate(rows)
        return loss.detach()

    return step


def after(batch: int, channels: int, depth: int, side: int, rows: int) -> Step:
    fit, inputs = Fit(convnet(channels, depth, BOXES)), images(batch, side)

    def step():
        boxes = fit.model(inputs)
        found = boxes.detach()
        scaled = found * 2
        loss = scaled.square().mean()
        fit.update(loss + boxes.square().mean())
        collate(rows)
        return loss.detach()

    return step


if __name__ == "__main__":
    profiled(before, SIZES)
