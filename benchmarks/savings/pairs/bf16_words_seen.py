"""A large step in bfloat16 adds up on the host how many words it has read. The fix adds them up on the device."""

from __future__ import annotations

import torch
from heavy import LowPrecision, blocks, tokens
from parts import Step, collate, profiled

SIZES = {"heavy": (12, 512, 2048, 3, 4500), "light": (20, 512, 2048, 3, 3000)}
FIX = {
    "question": "wait removed",
    "kind": "wait",
    "fresh": True,
    "newest": True,
    "contact": 7,
    "written": "2026-11-26, before any run",
    "settle_ms": 300,
    "limited": True,
    "findings": [("SYN", "int(real.sum())")],
}


def counted(read: bool, batch: int, length: int, width: int, depth: int, work: int) -> Step:
    fit, inputs = LowPrecision(blocks(width, depth)), tokens(batch, length, width)
    real = torch.arange(batch * length, device="cuda").reshape(batch, length) % 7 > 0
    seen, kept = [0], torch.zeros((), dtype=torch.long, device="cuda")

    def step():
        loss = (fit.model(inputs).float().square().mean(2) * real).mean()
        fit.update(loss)
        if read:
            seen[0] += int(real.sum())
        else:
            kept.add_(real.sum())
        collate(work)
        return loss.detach()

    return step


def before(batch: int, length: int, width: int, depth: int, work: int) -> Step:
    return counted(True, batch, length, width, depth, work)


def after(batch: int, length: int, width: int, depth: int, work: int) -> Step:
    return counted(False, batch, length, width, depth, work)


if __name__ == "__main__":
    profiled(before, SIZES)
