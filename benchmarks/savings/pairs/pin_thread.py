"""Each batch is pinned by the thread that trains; the fix has another thread pin it ahead."""

import queue
import threading

import torch
from parts import Step, Training, collate, profiled

SIZES = {"medium": (2560, 2048, 500), "large": (8192, 2048, 500)}
FIX = {
    "question": "pin_memory in another thread",
    "kind": "transform",
    "findings": [("CPY202", "source.pin_memory()")],
}


def before(batch: int, width: int, rows: int) -> Step:
    training, source = Training(batch, width), torch.ones(batch, width)

    def step():
        pinned = source.pin_memory()
        loss = training.forward(pinned.to("cuda", non_blocking=True))
        training.backward(loss)
        collate(rows)
        return loss

    return step


def after(batch: int, width: int, rows: int) -> Step:
    training, source = Training(batch, width), torch.ones(batch, width)
    ready: queue.Queue[torch.Tensor] = queue.Queue(maxsize=2)
    pin_memory = source.pin_memory

    def pin() -> None:
        while True:
            ready.put(pin_memory())

    threading.Thread(target=pin, daemon=True).start()

    def step():
        pinned = ready.get()
        loss = training.forward(pinned.to("cuda", non_blocking=True))
        training.backward(loss)
        collate(rows)
        return loss

    return step


if __name__ == "__main__":
    profiled(before, SIZES)
