"""A compiled loss logs its value with ``.item()`` before a penalty is added; the fix keeps the value on the device."""

import torch
from blocks import blocks, rows
from parts import Step, profiled
from torch import nn

SIZES = {"small": (64, 256, 6), "large": (8192, 2048, 4)}
FIX = {
    "question": "one graph",
    "kind": "transform",
    "fresh": True,
    "compiled": True,
    "findings": [("CMP702", "loss.item()"), ("SYN102", "loss.item()")],
}


def training(batch: int, width: int, depth: int, reads: bool) -> Step:
    model, inputs, log = blocks(width, depth), rows(batch, width), {}
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)

    @torch.compile
    def loss_of(x: torch.Tensor) -> torch.Tensor:
        hidden = model(x)
        loss = nn.functional.mse_loss(hidden, x)
        if reads:
            log["loss"] = loss.item()
        else:
            log["loss"] = loss.detach()
        return loss + 1e-4 * hidden.square().mean()

    def step():
        optimizer.zero_grad()
        loss_of(inputs).backward()
        optimizer.step()
        return log["loss"]

    return step


def before(batch: int, width: int, depth: int) -> Step:
    return training(batch, width, depth, reads=True)


def after(batch: int, width: int, depth: int) -> Step:
    return training(batch, width, depth, reads=False)


if __name__ == "__main__":
    profiled(before, SIZES)
