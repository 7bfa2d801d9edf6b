"""A stack of small convolutions reads a signal. The fix replays it as a CUDA graph."""

from __future__ import annotations

import torch
from parts import Step, profiled
from torch import nn

SIZES = {"small": (8, 256, 32, 16), "deep": (32, 1024, 64, 40)}
FIX = {
    "question": "CUDA graph",
    "kind": "transform",
    "fresh": True,
    "newest": True,
    "contact": 3,
    "findings": [("LCH501", "")],
}


class Wave(nn.Module):
    def __init__(self, channels: int, dilation: int) -> None:
        super().__init__()
        self.mix = nn.Conv1d(channels, 2 * channels, 3, padding=dilation, dilation=dilation)
        self.out = nn.Conv1d(channels, channels, 1)

    def forward(self, signal: torch.Tensor) -> torch.Tensor:
        values, gates = self.mix(signal).chunk(2, dim=1)
        return signal + self.out(torch.tanh(values) * torch.sigmoid(gates))


def waves(eager: bool, batch: int, length: int, channels: int, depth: int) -> Step:
    torch.manual_seed(0)
    model = nn.Sequential(*[Wave(channels, 2 ** (number % 4)) for number in range(depth)])
    model = model.to("cuda").requires_grad_(False)
    signal = torch.linspace(-1, 1, batch * channels * length, device="cuda").reshape(batch, channels, length)

    def once():
        return model(signal)

    if eager:
        return once

    side_stream, recorded = torch.cuda.Stream(), torch.cuda.CUDAGraph()
    side_stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side_stream):
        for _ in range(3):
            once()
    torch.cuda.current_stream().wait_stream(side_stream)
    with torch.cuda.graph(recorded):
        result = once()

    def step():
        recorded.replay()
        return result

    return step


def before(batch: int, length: int, channels: int, depth: int) -> Step:
    return waves(True, batch, length, channels, depth)


def after(batch: int, length: int, channels: int, depth: int) -> Step:
    return waves(False, batch, length, channels, depth)


if __name__ == "__main__":
    profiled(before, SIZES)
