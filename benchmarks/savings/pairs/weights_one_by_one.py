"""Sample weights go to the device one by one; the fix copies them together."""

import torch
from models import Fit, convnet, images
from parts import Step, profiled

SIZES = {"small": (48, 16, 32, 4), "medium": (128, 24, 48, 6)}
FIX = {
    "question": "copies gathered",
    "kind": "transform",
    "fresh": True,
    "findings": [("CPY203", "torch.tensor("), ("SYN101", "torch.tensor(")],
}


def weighted(gather: bool, batch: int, side: int, channels: int, depth: int) -> Step:
    fit, inputs = Fit(convnet(channels, depth)), images(batch, side)
    labels, weights = torch.arange(batch, device="cuda") % 10, [1 / (1 + number) for number in range(batch)]

    def step():
        if gather:
            share = torch.tensor(weights, device="cuda")
        else:
            share = torch.stack([torch.tensor(weight, device="cuda") for weight in weights])
        losses = torch.nn.functional.cross_entropy(fit.model(inputs), labels, reduction="none")
        loss = (losses * share).mean()
        fit.update(loss)
        return loss.detach()

    return step


def before(batch: int, side: int, channels: int, depth: int) -> Step:
    return weighted(False, batch, side, channels, depth)


def after(batch: int, side: int, channels: int, depth: int) -> Step:
    return weighted(True, batch, side, channels, depth)


if __name__ == "__main__":
    profiled(before, SIZES)
