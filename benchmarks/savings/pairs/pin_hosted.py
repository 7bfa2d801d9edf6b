"""A step that the host bounds pins its own batch; the fix has another thread pin it ahead."""

import queue
import threading

import torch
from models import Fit, convnet, images
from parts import Step, profiled

SIZES = {"hosted": (64, 16, 20, 32)}
FIX = {
    "question": "pin_memory in another thread",
    "kind": "transform",
    "held_out": True,
    "findings": [("CPY202", "source.pin_memory()")],
}


def before(batch: int, channels: int, depth: int, side: int) -> Step:
    fit, source = Fit(convnet(channels, depth)), images(batch, side).cpu()

    def step():
        pinned = source.pin_memory()
        loss = fit.model(pinned.to("cuda", non_blocking=True)).square().mean()
        fit.update(loss)
        return loss.detach()

    return step


def after(batch: int, channels: int, depth: int, side: int) -> Step:
    fit, source = Fit(convnet(channels, depth)), images(batch, side).cpu()
    ready: queue.Queue[torch.Tensor] = queue.Queue(maxsize=2)
    pin_memory = source.pin_memory

    def pin() -> None:
        while True:
            ready.put(pin_memory())

    threading.Thread(target=pin, daemon=True).start()

    def step():
        pinned = ready.get()
        loss = fit.model(pinned.to("cuda", non_blocking=True)).square().mean()
        fit.update(loss)
        return loss.detach()

    return step


if __name__ == "__main__":
    profiled(before, SIZES)
