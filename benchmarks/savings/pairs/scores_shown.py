"""Every step prints a few of its scores as a tensor. The fix prints none."""

from __future__ import annotations

import os

from models import Fit, convnet, images
from parts import Step, collate, profiled

SIZES = {"medium": (256, 32, 64, 6, 1500), "hosted": (16, 16, 32, 6, 0)}
FIX = {
    "question": "wait removed",
    "kind": "wait",
    "fresh": True,
    "newest": True,
    "contact": 7,
    "written": "2026-11-26, before any run",
    "findings": [("SYN104", "print(")],
}


def shown(prints: bool, batch: int, side: int, channels: int, depth: int, work: int) -> Step:
    fit, pictures = Fit(convnet(channels, depth)), images(batch, side)
    out = open(os.devnull, "w")  # noqa: SIM115

    def step():
        scores = fit.model(pictures)
        loss = scores.square().mean()
        fit.update(loss)
        if prints:
            print(scores.detach()[0], file=out)
        collate(work)
        return loss.detach()

    return step


def before(batch: int, side: int, channels: int, depth: int, work: int) -> Step:
    return shown(True, batch, side, channels, depth, work)


def after(batch: int, side: int, channels: int, depth: int, work: int) -> Step:
    return shown(False, batch, side, channels, depth, work)


if __name__ == "__main__":
    profiled(before, SIZES)
