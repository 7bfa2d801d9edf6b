"""A learner of values logs three figures of each step as they come. The fix leaves them on the device."""

from __future__ import annotations

import copy

import torch
from parts import Step, collate, profiled
from torch import nn

SIZES = {"small": (128, 64, 256, 300)}
FIX = {
    "question": "all waits removed",
    "kind": "wait",
    "fresh": True,
    "newest": True,
    "contact": 9,
    "written": "2026-11-28, before any run",
    "findings": [
        ("SYN", "best.mean().item()"),
        ("SYN", "errors.max().item()"),
        ("SYN", "loss.item()"),
    ],
}
ACTIONS, DISCOUNT = 6, 0.99


def learned(read: bool, batch: int, seen: int, width: int, work: int) -> Step:
    torch.manual_seed(0)
    body = [nn.Linear(seen, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU(), nn.Linear(width, ACTIONS)]
    online = nn.Sequential(*body).to("cuda")
    target = copy.deepcopy(online).requires_grad_(False)
    optimizer = torch.optim.Adam(online.parameters(), lr=1e-4)
    states = torch.linspace(-1, 1, 2 * batch * seen, device="cuda").reshape(2, batch, seen)
    actions, rewards = torch.arange(batch, device="cuda") % ACTIONS, torch.linspace(0, 1, batch, device="cuda")
    figures: dict[str, float | torch.Tensor] = {}

    def step():
        with torch.no_grad():
            choices = online(states[1]).argmax(1, keepdim=True)
            best = target(states[1]).gather(1, choices).squeeze(1)
        figures["values"] = best.mean().item() if read else best.mean()
        values = online(states[0]).gather(1, actions[:, None]).squeeze(1)
        errors = (values - rewards - DISCOUNT * best).detach().abs()
        figures["worst"] = errors.max().item() if read else errors.max()
        loss = nn.functional.smooth_l1_loss(values, rewards + DISCOUNT * best)
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_value_(online.parameters(), 1.0)
        optimizer.step()
        figures["loss"] = loss.item() if read else loss.detach()
        collate(work)
        return loss.detach()

    return step


def before(batch: int, seen: int, width: int, work: int) -> Step:
    return learned(True, batch, seen, width, work)


def after(batch: int, seen: int, width: int, work: int) -> Step:
    return learned(False, batch, seen, width, work)


if __name__ == "__main__":
    profiled(before, SIZES)
