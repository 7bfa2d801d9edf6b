"""A pinned batch is copied in line with the compute that needs it; the fix copies it a step early on a side stream."""

import torch
from parts import Step, Training, profiled

SIZES = {"large": (8192, 2048, 1), "copying": (4096, 2048, 4)}
FIX = {
    "question": "prefetch",
    "kind": "transform",
    "findings": [("OVL301", 'source.to("cuda", non_blocking=True)')],
}


def before(batch: int, width: int, parts: int) -> Step:
    training, source = Training(batch, width), torch.ones(parts, batch, width).pin_memory()

    def step():
        arrived = source.to("cuda", non_blocking=True)
        loss = training.forward(arrived[0])
        training.backward(loss)
        return loss

    return step


def after(batch: int, width: int, parts: int) -> Step:
    training, source = Training(batch, width), torch.ones(parts, batch, width).pin_memory()
    side, coming = torch.cuda.Stream(), []

    def fetch():
        with torch.cuda.stream(side):
            coming.append(source.to("cuda", non_blocking=True))

    fetch()

    def step():
        torch.cuda.current_stream().wait_stream(side)
        arrived = coming.pop()
        arrived.record_stream(torch.cuda.current_stream())
        fetch()
        loss = training.forward(arrived[0])
        training.backward(loss)
        return loss

    return step


if __name__ == "__main__":
    profiled(before, SIZES)
