"""Large steps in bfloat16 copy their video clips from pageable memory. The fix pins them, once, and does not wait."""

from __future__ import annotations

import torch
from heavy import LOW, LowPrecision
from parts import Step, profiled
from torch import nn

SIZES = {"heavy": (32, 384, 2048, 3)}
FIX = {
    "question": "pinned and asynchronous",
    "kind": "transform",
    "fresh": True,
    "newest": True,
    "contact": 9,
    "written": "2026-11-28, before any run",
    "settle_ms": 300,
    "limited": True,
    "findings": [
        ("CPY201", "clips.to("),
        ("SYN101", "clips.to("),
    ],
}
VALUES = 768


class Part(nn.Module):
    """Mixes the patches of a clip by their mean, and the values of each."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.norm, self.common = nn.LayerNorm(width), nn.Linear(width, width)
        self.feed = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

    def forward(self, given: torch.Tensor) -> torch.Tensor:
        given = given + self.common(given.mean(1, keepdim=True))
        return given + self.feed(self.norm(given))


def watched(pageable: bool, batch: int, patches: int, width: int, depth: int) -> Step:
    torch.manual_seed(0)
    fit = LowPrecision(nn.Sequential(nn.Linear(VALUES, width), *(Part(width) for _ in range(depth))))
    clips = torch.linspace(-1, 1, batch * patches * VALUES).reshape(batch, patches, VALUES)
    clips = clips if pageable else clips.pin_memory()

    def step():
        inputs = clips.to("cuda", non_blocking=not pageable)
        loss = fit.model(inputs.to(LOW)).float().square().mean()
        fit.update(loss)
        return loss.detach()

    return step


def before(batch: int, patches: int, width: int, depth: int) -> Step:
    return watched(True, batch, patches, width, depth)


def after(batch: int, patches: int, width: int, depth: int) -> Step:
    return watched(False, batch, patches, width, depth)


if __name__ == "__main__":
    profiled(before, SIZES)
