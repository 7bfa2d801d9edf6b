"""Gradients of a small model are computed kernel by kernel; the fix replays forward and backward as one CUDA graph."""

import torch
from models import convnet, images
from parts import Step, profiled

SIZES = {"small": (16, 16, 32, 8), "medium": (128, 32, 48, 8)}
FIX = {"question": "CUDA graph", "kind": "transform", "fresh": True, "findings": [("LCH501", "")]}


def model_of(batch: int, side: int, channels: int, depth: int):
    model, inputs = convnet(channels, depth).to("cuda").eval(), images(batch, side)

    def gradients() -> torch.Tensor:
        loss = model(inputs).square().mean()
        torch.autograd.grad(loss, list(model.parameters()))
        return loss.detach()

    return gradients


def before(batch: int, side: int, channels: int, depth: int) -> Step:
    return model_of(batch, side, channels, depth)


def after(batch: int, side: int, channels: int, depth: int) -> Step:
    gradients = model_of(batch, side, channels, depth)
    beside, recorded = torch.cuda.Stream(), torch.cuda.CUDAGraph()
    beside.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(beside):
        for _ in range(3):
            gradients()
    torch.cuda.current_stream().wait_stream(beside)
    with torch.cuda.graph(recorded):
        loss = gradients()

    def step():
        recorded.replay()
        return loss

    return step


if __name__ == "__main__":
    profiled(before, SIZES)
