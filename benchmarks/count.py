"""What counting every wait and following the phases costs: ``python -m benchmarks.count`` on a machine with a GPU.

Blocks of steps with all of it on and off alternate in one process, in random order within each pair, so that both see
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
from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch
from torch import nn

from benchmarks.overhead import Step, device_bound, host_bound, interval, small_copies
from syncscope.collect.counting import RunCount
from syncscope.collect.paths import Paths

BLOCK_S = 0.25

LEARNING_S = 0.15
"""Steps before each block: switching hooks makes Python learn anew where the attributes of classes are."""


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


LOOPS: dict[str, tuple[Callable[[], Step], bool]] = {
    "host-bound, 1 wait": (host_bound, False),
    "device-bound, 1 wait": (device_bound, False),
    "200 copies": (small_copies, True),
    "rollout, 6 waits": (rollout, False),
    "rollout that tells": (rollout, True),
}
"""The loops, and whether the program calls ``syncscope.step()``: one without a module must."""


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


def measure(make: Callable[[], Step], tells: bool, blocks: int, order: random.Random) -> dict[str, Any]:
    """The seconds a step of each pair of blocks, and what the counter says."""
    step = make()
    timed(step, 5, nothing)
    length = timed(step, 20, nothing)
    steps, learning = max(2, round(BLOCK_S / length)), max(3, round(LEARNING_S / length))
    count = RunCount(Paths(Path.cwd()), "benchmark", nothing)
    count.open(torch)
    counter, signals, tracker = count.counter, count.signals, count.tracker
    assert counter is not None and signals is not None and tracker is not None, count.notes
    pairs: list[dict[str, float]] = []
    end = count.step if tells else nothing
    try:
        timed(step, steps, end)  # how dense the waits are
        for _ in range(blocks):
            pair = {}
            for mode in order.sample(["on", "off"], 2):
                if mode == "on":
                    signals.attach(torch)
                    counter.resume()
                    timed(step, learning, end)
                    pair["on"] = timed(step, steps, end)
                else:
                    counter.suspend()
                    signals.detach()
                    timed(step, learning, nothing)
                    pair["off"] = timed(step, steps, nothing)
            pairs.append(pair)
        phase = max(tracker.phases, key=lambda phase: phase.steps)
        return {
            "pairs": pairs,
            "steps": steps,
            "own": count.overhead_share,
            "one_in": counter.one_in(phase),
            "places": len(counter.waits()),
            "prices": asdict(counter.prices),
        }
    finally:
        signals.attach(torch)
        count.close()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--blocks", type=int, default=30)
    parser.add_argument("--json", type=Path, help="also write every block's figures here")
    options = parser.parse_args()
    everything: dict[str, Any] = {"device": torch.cuda.get_device_name(), "torch": torch.__version__}
    print(f"{everything['device']}, torch {torch.__version__}, {options.blocks} interleaved blocks")
    print(f"{'loop':22} {'ms a step':>10} {'on / off':>9}  {'95 % interval':17} {'one in':>7} {'own':>8} {'places':>7}")
    order = random.Random(1)
    for name, (make, tells) in LOOPS.items():
        found = measure(make, tells, options.blocks, order)
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
