"""A small step reads ten metrics one by one; the fix keeps them on the device."""

import torch
from models import Fit, convnet, images
from parts import Step, profiled

SIZES = {"small": (32, 16, 32, 6), "medium": (256, 32, 64, 8)}
FIX = {
    "question": "all waits removed",
    "kind": "wait",
    "fresh": True,
    "findings": [("SYN102", "value.item()")],
}


def measured(read: bool, batch: int, side: int, channels: int, depth: int) -> Step:
    fit, inputs = Fit(convnet(channels, depth)), images(batch, side)
    labels = torch.arange(batch, device="cuda") % 10

    def step():
        scores = fit.model(inputs)
        loss = torch.nn.functional.cross_entropy(scores, labels)
        fit.update(loss)
        scores = scores.detach()
        values = [loss.detach(), scores.mean(), scores.std(), scores.max(), scores.min()]
        values += [(scores.argmax(1) == labels).float().mean(), scores.abs().mean(), scores.norm()]
        found = [value.item() for value in values] if read else values
        return found[0]

    return step


def before(batch: int, side: int, channels: int, depth: int) -> Step:
    return measured(True, batch, side, channels, depth)


def after(batch: int, side: int, channels: int, depth: int) -> Step:
    return measured(False, batch, side, channels, depth)


if __name__ == "__main__":
    profiled(before, SIZES)
