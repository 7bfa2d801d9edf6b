"""A recurrent loop looks at every token whether its state has grown too far; the fix limits it on the device."""

import torch
from models import Fit
from parts import Step, profiled
from torch import nn

SIZES = {"medium": (4096, 1024, 12)}
FIX = {
    "question": "all waits removed",
    "kind": "wait",
    "held_out": True,
    "findings": [("SYN102", "state.abs().max()")],
}
LIMIT = 1.0


def recurrent(batch: int, width: int) -> tuple[Fit, torch.Tensor]:
    torch.manual_seed(0)
    return Fit(nn.GRUCell(width, width)), torch.ones(batch, width, device="cuda")


def before(batch: int, width: int, tokens: int) -> Step:
    fit, inputs = recurrent(batch, width)

    def step():
        state = torch.zeros_like(inputs)
        for _ in range(tokens):
            state = fit.model(inputs, state)
            if state.abs().max() > LIMIT:
                state = state.clamp(-LIMIT, LIMIT)
        fit.update(state.square().mean())
        return state

    return step


def after(batch: int, width: int, tokens: int) -> Step:
    fit, inputs = recurrent(batch, width)

    def step():
        state = torch.zeros_like(inputs)
        for _ in range(tokens):
            state = fit.model(inputs, state)
            state = state.clamp(-LIMIT, LIMIT)
        fit.update(state.square().mean())
        return state

    return step


if __name__ == "__main__":
    profiled(before, SIZES)
