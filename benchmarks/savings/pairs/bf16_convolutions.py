"""Large convolutions in bfloat16 count right answers with ``.item()`` in every step; the fix adds them up there."""

import torch
from heavy import LOW
from models import Fit, convnet, images
from parts import Step, collate, profiled

SIZES = {"light": (64, 64, 256, 6, 1500), "heavy": (64, 64, 256, 6, 6000)}
FIX = {
    "question": "wait removed",
    "kind": "wait",
    "fresh": True,
    "settle_ms": 250,
    "limited": True,
    "findings": [("SYN102", "right.item()")],
}


def counted(read: bool, batch: int, side: int, channels: int, depth: int, work: int) -> Step:
    fit = Fit(convnet(channels, depth).to(memory_format=torch.channels_last))
    inputs = images(batch, side).to(memory_format=torch.channels_last)
    labels, total = torch.arange(batch, device="cuda") % 10, []

    def step():
        collate(work)
        with torch.autocast("cuda", torch.bfloat16, enabled=LOW is torch.bfloat16):
            scores = fit.model(inputs)
            loss = torch.nn.functional.cross_entropy(scores, labels)
        right = (scores.argmax(1) == labels).sum()
        fit.update(loss)
        total[:] = [right.item() if read else right]
        return total[0]

    return step


def before(batch: int, side: int, channels: int, depth: int, work: int) -> Step:
    return counted(True, batch, side, channels, depth, work)


def after(batch: int, side: int, channels: int, depth: int, work: int) -> Step:
    return counted(False, batch, side, channels, depth, work)


if __name__ == "__main__":
    profiled(before, SIZES)
