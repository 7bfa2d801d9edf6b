"""The loops that measurements of the count and of guards run."""

from __future__ import annotations

import time
from collections.abc import Callable

import torch
from torch import nn

from benchmarks.overhead import Step, device_bound, host_bound, small_copies


def rollout(device: str = "cuda") -> Step:
    """A policy asked for one action: six waits in half a millisecond."""
    net = nn.Sequential(nn.Linear(8, 64), nn.Tanh(), nn.Linear(64, 64), nn.Tanh(), nn.Linear(64, 5)).to(device)
    observation = torch.randn(1, 8)

    @torch.no_grad()
    def step() -> None:
        out = net(observation.to(device))
        choice = torch.distributions.Categorical(logits=out[:, :4], validate_args=False)
        action = choice.sample()
        action.item()
        choice.log_prob(action).item()
        choice.entropy().item()
        out[0, 4].item()
        out.cpu()

    return step


def clipped(device: str = "cuda") -> Step:
    """Fifteen waits among 120 small layers, and 240 calls of ``Tensor.to`` that copy nothing: clipping moves the norms
    of gradients to where they are."""
    blocks = [
        nn.Sequential(*[layer for _ in range(8) for layer in (nn.Linear(128, 128), nn.ReLU())]).to(device)
        for _ in range(15)
    ]
    net = nn.Sequential(*blocks)
    optimizer = torch.optim.Adam(net.parameters(), foreach=False)
    x = torch.randn(64, 128, device=device)

    def step() -> None:
        optimizer.zero_grad()
        y = x
        for block in blocks:
            y = block(y)
            y.detach().mean().item()
        y.square().mean().backward()
        nn.utils.clip_grad_norm_(net.parameters(), 1.0)
        optimizer.step()

    return step


LOOPS: dict[str, tuple[Callable[..., Step], bool]] = {
    "rollout, 6 waits": (rollout, False),
    "host-bound, 1 wait": (host_bound, False),
    "rollout that tells": (rollout, True),
    "200 copies": (small_copies, True),
    "device-bound, 1 wait": (device_bound, False),
    "clipped, 15 waits": (clipped, True),
}
"""The loops, and whether the program calls ``syncscope.step()``: one without a module must. Those first of which least
is known."""


def timed(step: Step, steps: int, after: Callable[[], None]) -> float:
    """Seconds a step, on average: a counted step among others that are not must show."""
    torch.cuda.synchronize()
    start = time.perf_counter()
    for _ in range(steps):
        step()
        after()
    torch.cuda.synchronize()
    return (time.perf_counter() - start) / steps


def nothing() -> None:
    """What ends a step that is not counted."""
