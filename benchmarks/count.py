"""What counting every wait costs: ``python -m benchmarks.count`` on a machine with a GPU.

Blocks of steps with counting on and off alternate in one process, in random order within each pair, so that both see
the same clock of the host. Printed for four loops: milliseconds a step without counting, the ratio of a pair (its
median and the 95 % bootstrap interval of the median), of how many steps one is counted, and what the counter itself
believes that it costs. Takes about a minute with 30 blocks.
"""

from __future__ import annotations

import argparse
import json
import random
import statistics
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from types import FrameType
from typing import Any

import torch
from torch import nn

from benchmarks.overhead import Step, device_bound, host_bound, interval, small_copies
from syncscope.collect.count.counter import Counter
from syncscope.collect.paths import Paths
from syncscope.collect.sites.stacks import Stacks
from syncscope.collect.sites.threads import Threads
from syncscope.schema.counting import PhaseKind

BLOCK_S = 0.25


@dataclass
class Loop:
    """A phase that never changes, and the tracker that knows no other."""

    number: int = 0
    kind: PhaseKind = "train"
    steps: int = 0

    @property
    def current(self) -> Loop:
        return self

    def at(self, frame: FrameType) -> Loop:
        return self


def rollout() -> Step:
    """A policy asked for one action: six waits in half a millisecond."""
    net = nn.Sequential(nn.Linear(8, 64), nn.Tanh(), nn.Linear(64, 64), nn.Tanh(), nn.Linear(64, 5)).cuda()
    observation = torch.randn(1, 8)

    @torch.no_grad()
    def step() -> None:
        out = net(observation.to("cuda"))
        choice = torch.distributions.Categorical(logits=out[:, :4], validate_args=False)
        action = choice.sample()
        action.item()
        choice.log_prob(action).item()
        choice.entropy().item()
        out[0, 4].item()
        out.cpu()

    return step


LOOPS: dict[str, Callable[[], Step]] = {
    "host-bound, 1 wait": host_bound,
    "device-bound, 1 wait": device_bound,
    "200 copies": small_copies,
    "rollout, 6 waits": rollout,
}


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


def measure(make: Callable[[], Step], blocks: int, order: random.Random) -> dict[str, Any]:
    """The seconds a step of each pair of blocks, and what the counter says."""
    step = make()
    timed(step, 5, nothing)
    steps = max(2, round(BLOCK_S / timed(step, 20, nothing)))
    loop = Loop()
    counter = Counter(torch, Stacks(Paths(Path.cwd())), Threads(), loop)

    def counted() -> None:
        loop.steps += 1
        counter.stepped(loop)

    pairs: list[dict[str, float]] = []
    counter.open()
    try:
        timed(step, steps, counted)  # how dense the waits are
        for _ in range(blocks):
            pair = {}
            for mode in order.sample(["on", "off"], 2):
                if mode == "on":
                    counter.resume()
                    pair["on"] = timed(step, steps, counted)
                else:
                    counter.suspend()
                    pair["off"] = timed(step, steps, nothing)
            pairs.append(pair)
        own, one_in = counter.overhead_share, counter.one_in(loop)
    finally:
        counter.close()
    return {
        "pairs": pairs,
        "steps": steps,
        "own": own,
        "one_in": one_in,
        "places": len(counter.waits()),
        "prices": asdict(counter.prices),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--blocks", type=int, default=30)
    parser.add_argument("--json", type=Path, help="also write every block's figures here")
    options = parser.parse_args()
    everything: dict[str, Any] = {"device": torch.cuda.get_device_name(), "torch": torch.__version__}
    print(f"{everything['device']}, torch {torch.__version__}, {options.blocks} interleaved blocks")
    print(f"{'loop':22} {'ms a step':>10} {'on / off':>9}  {'95 % interval':17} {'one in':>7} {'own':>8} {'places':>7}")
    order = random.Random(1)
    for name, make in LOOPS.items():
        found = measure(make, options.blocks, order)
        ratios = [pair["on"] / pair["off"] for pair in found["pairs"]]
        low, high = interval(ratios)
        length = statistics.median(pair["off"] for pair in found["pairs"]) * 1e3
        print(
            f"{name:22} {length:10.3f} {statistics.median(ratios):9.4f}  {low:6.4f} – {high:6.4f}   "
            f"{found['one_in']:7.1f} {found['own']:8.2%} {found['places']:7}",
            flush=True,
        )
        everything[name] = found
    print("prices in ns:", {name: round(value) for name, value in found["prices"].items()})
    if options.json:
        options.json.write_text(json.dumps(everything))


if __name__ == "__main__":
    main()
