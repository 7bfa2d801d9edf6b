"""A recurrent policy asks the device at each move whether the episode has ended. The fix knows it from the host."""

from __future__ import annotations

import torch
from models import Fit
from parts import Step, profiled
from torch import nn

SIZES = {"short": (16, 64, 128), "long": (48, 128, 512)}
FIX = {
    "question": "all waits removed",
    "kind": "wait",
    "fresh": True,
    "newest": True,
    "contact": 9,
    "written": "2026-11-28, before any run",
    "findings": [("SYN", "ends[move].item()")],
}
MOVES = 4


def played(read: bool, moves: int, batch: int, width: int) -> Step:
    torch.manual_seed(0)
    cell, head = nn.LSTMCell(width, width), nn.Linear(width, MOVES)
    fit = Fit(nn.ModuleList([cell, head]))
    seen = torch.linspace(-1, 1, moves * batch * width, device="cuda").reshape(moves, batch, width)
    known = [move % 5 == 4 for move in range(moves)]
    ends, gains = torch.tensor(known, device="cuda"), torch.linspace(-1, 1, moves * batch, device="cuda")

    def step():
        state, scores = None, []
        for move in range(moves):
            ended = ends[move].item() if read else known[move]
            state = cell(seen[move], None if ended else state)
            scores.append(head(state[0]))
        loss = -(torch.cat(scores).log_softmax(1)[:, 0] * gains).mean()
        fit.update(loss)
        return loss.detach()

    return step


def before(moves: int, batch: int, width: int) -> Step:
    return played(True, moves, batch, width)


def after(moves: int, batch: int, width: int) -> Step:
    return played(False, moves, batch, width)


if __name__ == "__main__":
    profiled(before, SIZES)
