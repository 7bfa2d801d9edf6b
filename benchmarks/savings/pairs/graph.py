"""Many small kernels, each launched by the host; the fix records them once as a CUDA graph."""

import torch
from parts import Step, profiled
from torch import nn

SIZES = {"small": (32, 256), "medium": (1024, 512)}
FIX = {"question": "CUDA graph", "kind": "transform", "findings": [("LCH501", "")]}
LAYERS = 48


def network(width: int) -> nn.Module:
    torch.manual_seed(0)
    layers = [nn.Sequential(nn.Linear(width, width), nn.LayerNorm(width), nn.GELU()) for _ in range(LAYERS)]
    return nn.Sequential(*layers).to("cuda").requires_grad_(False)


def before(batch: int, width: int) -> Step:
    net, inputs = network(width), torch.ones(batch, width, device="cuda")

    def step():
        return net(inputs)

    return step


def after(batch: int, width: int) -> Step:
    net, inputs = network(width), torch.ones(batch, width, device="cuda")
    side, recorded = torch.cuda.Stream(), torch.cuda.CUDAGraph()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        net(inputs)
    torch.cuda.current_stream().wait_stream(side)
    with torch.cuda.graph(recorded):
        result = net(inputs)

    def step():
        recorded.replay()
        return result

    return step


if __name__ == "__main__":
    profiled(before, SIZES)
