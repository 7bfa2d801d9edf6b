"""A large step in mixed precision shows its gradient scaler's factor each time. The fix shows one in a million."""

from __future__ import annotations

import itertools

import torch
from heavy import mlp
from models import Fit
from parts import Step, collate, profiled

SIZES = {"heavy": (8192, 4096, 3, 4000), "hosted": (64, 256, 6, 0)}
FIX = {
    "question": "wait removed",
    "kind": "wait",
    "fresh": True,
    "newest": True,
    "contact": 7,
    "written": "2026-11-26, before any run",
    "settle_ms": 300,
    "findings": [("SYN", "scaler.get_scale()")],
}
RARELY = 1_000_000


def shown(often: bool, batch: int, width: int, depth: int, work: int) -> Step:
    where = "cuda" if torch.cuda.is_available() else "cpu"
    fit, scaler = Fit(mlp(width, depth)), torch.amp.GradScaler(where, init_scale=8.0)
    fit.optimizer = torch.optim.SGD(fit.parameters, lr=1e-3, fused=True)  # which looks for overflows by itself
    inputs = torch.linspace(-1, 1, batch * width, device="cuda").reshape(batch, width)
    count, every, shows = itertools.count(1), 1 if often else RARELY, []

    def step():
        with torch.autocast(where, dtype=torch.float16 if where == "cuda" else torch.bfloat16):
            loss = fit.model(inputs).float().square().mean()
        fit.optimizer.zero_grad()
        scaler.scale(loss).backward()
        scaler.step(fit.optimizer)
        scaler.update()
        if next(count) % every == 0:
            shows[:] = [scaler.get_scale()]
        collate(work)
        return loss.detach()

    return step


def before(batch: int, width: int, depth: int, work: int) -> Step:
    return shown(True, batch, width, depth, work)


def after(batch: int, width: int, depth: int, work: int) -> Step:
    return shown(False, batch, width, depth, work)


if __name__ == "__main__":
    profiled(before, SIZES)
