"""TF32 products are checked for overflow layer by layer; the fix checks once, on the device."""

import torch
from heavy import allow_tf32, mlp
from models import Fit
from parts import Step, profiled

SIZES = {"few": (16384, 4096, 4), "many": (4096, 4096, 12)}
FIX = {
    "question": "all waits removed",
    "kind": "wait",
    "fresh": True,
    "settle_ms": 250,
    "limited": True,
    "findings": [("SYN", "torch.isfinite(values).all()")],
}


def checked(look: bool, batch: int, width: int, depth: int) -> Step:
    allow_tf32()
    fit = Fit(mlp(width, depth))
    inputs = torch.linspace(-1, 1, batch * width, device="cuda").reshape(batch, width)

    def step():
        values = inputs
        for layer in fit.model:
            values = layer(values)
            if look and not torch.isfinite(values).all():
                break
        loss = values.square().mean()
        fit.update(loss)
        return loss.detach()

    return step


def before(batch: int, width: int, depth: int) -> Step:
    return checked(True, batch, width, depth)


def after(batch: int, width: int, depth: int) -> Step:
    return checked(False, batch, width, depth)


if __name__ == "__main__":
    profiled(before, SIZES)
