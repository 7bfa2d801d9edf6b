"""A transformer reads a short prompt, kernel by kernel; the fix replays them as one CUDA graph."""

import torch
from models import transformer, words
from parts import Step, profiled

SIZES = {"small": (2, 32, 256, 12), "long": (4, 128, 512, 24)}
FIX = {"question": "CUDA graph", "kind": "transform", "held_out": True, "findings": [("LCH501", "")]}


def reader(batch: int, length: int, width: int, depth: int):
    return transformer(width, depth).to("cuda").requires_grad_(False), words(batch, length)


def before(batch: int, length: int, width: int, depth: int) -> Step:
    model, prompt = reader(batch, length, width, depth)

    def step():
        return model(prompt)

    return step


def after(batch: int, length: int, width: int, depth: int) -> Step:
    model, prompt = reader(batch, length, width, depth)
    side, recorded = torch.cuda.Stream(), torch.cuda.CUDAGraph()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        model(prompt)
    torch.cuda.current_stream().wait_stream(side)
    with torch.cuda.graph(recorded):
        result = model(prompt)

    def step():
        recorded.replay()
        return result

    return step


if __name__ == "__main__":
    profiled(before, SIZES)
