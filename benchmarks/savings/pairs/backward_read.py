"""A gradient reads a value on the host, on the autograd engine's own thread; the fix multiplies on the device."""

import torch
from parts import Step, Training, collate, profiled

SIZES = {"medium": (2560, 2048, 2500)}
FIX = {"question": "wait removed", "kind": "wait", "findings": [("SYN102", "factor.item()")]}


class ScaledOnHost(torch.autograd.Function):
    @staticmethod
    def forward(ctx, values, factor):
        ctx.save_for_backward(factor)
        return values * factor

    @staticmethod
    def backward(ctx, gradient):
        (factor,) = ctx.saved_tensors
        return gradient * factor.item(), None


class ScaledOnDevice(ScaledOnHost):
    @staticmethod
    def backward(ctx, gradient):
        (factor,) = ctx.saved_tensors
        return gradient * factor, None


def scaled_with(scaled: type[ScaledOnHost], batch: int, width: int, rows: int) -> Step:
    training, factor = Training(batch, width), torch.tensor(0.5, device="cuda")

    def step():
        loss = training.forward(scaled.apply(training.body[0](training.inputs), factor))
        training.backward(loss)
        collate(rows)
        return loss

    return step


def before(batch: int, width: int, rows: int) -> Step:
    return scaled_with(ScaledOnHost, batch, width, rows)


def after(batch: int, width: int, rows: int) -> Step:
    return scaled_with(ScaledOnDevice, batch, width, rows)


if __name__ == "__main__":
    profiled(before, SIZES)
