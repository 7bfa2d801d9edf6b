"""Many small layers are launched one by one; the fix replays them as one CUDA graph."""

import torch
from parts import Step, profiled
from torch import nn

SIZES = {"deep": (16, 256, 60), "wide": (512, 1024, 40)}
FIX = {"question": "CUDA graph", "kind": "transform", "fresh": True, "findings": [("LCH501", "")]}


def mixer(batch: int, width: int, depth: int) -> tuple[nn.Module, torch.Tensor]:
    torch.manual_seed(0)
    layers = [part for _ in range(depth) for part in (nn.Linear(width, width), nn.LayerNorm(width), nn.SiLU())]
    return nn.Sequential(*layers).to("cuda").requires_grad_(False), torch.ones(batch, width, device="cuda")


def before(batch: int, width: int, depth: int) -> Step:
    model, inputs = mixer(batch, width, depth)

    def step():
        return model(inputs)

    return step


def after(batch: int, width: int, depth: int) -> Step:
    model, inputs = mixer(batch, width, depth)
    side, recorded = torch.cuda.Stream(), torch.cuda.CUDAGraph()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        model(inputs)
    torch.cuda.current_stream().wait_stream(side)
    with torch.cuda.graph(recorded):
        result = model(inputs)

    def step():
        recorded.replay()
        return result

    return step


if __name__ == "__main__":
    profiled(before, SIZES)
