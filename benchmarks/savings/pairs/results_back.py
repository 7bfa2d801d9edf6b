"""Results go to pageable memory and the host waits; the fix copies into pinned memory and looks a step later."""

import torch
from parts import Step, Training, collate, profiled

SIZES = {"medium": (2560, 2048, 2500)}
FIX = {
    "question": "copy made asynchronous",
    "kind": "transform",
    "findings": [("SYN101", "hidden.cpu()"), ("CPY201", "hidden.cpu()")],
}


def before(batch: int, width: int, rows: int) -> Step:
    training = Training(batch, width)

    def step():
        hidden = training.body(training.inputs).detach()
        loss = training.forward()
        training.backward(loss)
        result = hidden.cpu()
        collate(rows)
        result[0, 0].item()
        return loss

    return step


def after(batch: int, width: int, rows: int) -> Step:
    training = Training(batch, width)
    slots = [(torch.empty(batch, width, pin_memory=True), torch.cuda.Event()) for _ in range(2)]

    def step():
        hidden = training.body(training.inputs).detach()
        loss = training.forward()
        training.backward(loss)
        result, copied = slots[0]
        result.copy_(hidden, non_blocking=True)
        copied.record()
        slots.reverse()
        collate(rows)
        result, copied = slots[0]
        copied.synchronize()
        result[0, 0].item()
        return loss

    return step


if __name__ == "__main__":
    profiled(before, SIZES)
