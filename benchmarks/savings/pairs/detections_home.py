"""What is found in each picture is brought to the host picture by picture. The fix brings all of it at once."""

from __future__ import annotations

from models import convnet, images
from parts import Step, profiled

SIZES = {"few": (8, 32, 16, 6), "many": (48, 32, 16, 6)}
FIX = {
    "question": "many copies made one",
    "kind": "transform",
    "fresh": True,
    "newest": True,
    "contact": 5,
    "findings": [("CPY203", "row.cpu()"), ("SYN", "row.cpu()")],
}


def brought(single: bool, batch: int, side: int, channels: int, depth: int) -> Step:
    model, pictures = convnet(channels, depth, 48).to("cuda").eval().requires_grad_(False), images(batch, side)

    def step():
        found = model(pictures).view(batch, 8, 6)
        home = [row.cpu() for row in found] if single else list(found.cpu())
        return home[0]

    return step


def before(batch: int, side: int, channels: int, depth: int) -> Step:
    return brought(True, batch, side, channels, depth)


def after(batch: int, side: int, channels: int, depth: int) -> Step:
    return brought(False, batch, side, channels, depth)


if __name__ == "__main__":
    profiled(before, SIZES)
