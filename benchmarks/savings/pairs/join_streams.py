"""The host waits for a side stream before its result is used; the fix lets the device wait."""

import torch
from parts import Step, Training, collate, profiled

SIZES = {"medium": (2560, 2048, 2500)}
FIX = {"question": "wait removed", "kind": "wait", "findings": [("SYN105", "side.synchronize()")]}


def before(batch: int, width: int, rows: int) -> Step:
    training, side = Training(batch, width), torch.cuda.Stream()
    reference = torch.ones(width, width, device="cuda")

    def step():
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            target = (reference @ reference)[0, 0]
        loss = training.forward()
        side.synchronize()
        training.backward(loss + target)
        collate(rows)
        return loss

    return step


def after(batch: int, width: int, rows: int) -> Step:
    training, side = Training(batch, width), torch.cuda.Stream()
    reference = torch.ones(width, width, device="cuda")

    def step():
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            target = (reference @ reference)[0, 0]
        loss = training.forward()
        torch.cuda.current_stream().wait_stream(side)
        training.backward(loss + target)
        collate(rows)
        return loss

    return step


if __name__ == "__main__":
    profiled(before, SIZES)
