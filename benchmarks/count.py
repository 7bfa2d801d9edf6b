"""What counting every wait and following the phases costs: ``python -m benchmarks.count`` on a machine with a GPU.

Blocks of steps with all of it on and off alternate in one process, in random order within each pair, so that both see
the same clock of the host. A user's program attaches once for the run, so a block begins when the hooks have settled:
all modules are watched first, then few of them. What that takes is measured apart, as the cost of a look at all
modules, and added in proportion to the looks of a run of ``RUN_S``. So is the time of the thread that writes, which
runs beside both kinds of blocks.

Printed for each loop: milliseconds a step without counting, the ratio of a pair with these two shares (its median and
the 95 % bootstrap interval of the median), what a look costs, of how many steps one is counted, what the counter itself
believes that it costs, and how many calls of Python functions a step has more. Takes about four minutes with 40 blocks.
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

from benchmarks.calls import calls_of
from benchmarks.overhead import Step, device_bound, host_bound, interval, small_copies
from syncscope.collect.counting import RunCount
from syncscope.collect.paths import Paths
from syncscope.collect.phases.modules import LOOK_CALLS, LOOK_EVERY_NS, LOOK_PARTS

BLOCK_S = 0.25

LEARNING_S = 0.15
"""Steps before each block: switching hooks makes Python learn anew where the attributes of classes are."""

RUN_S = 300.0
"""The run whose looks at all modules are booked."""

CALLS_STEPS = 400
"""Steps whose calls are counted."""


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


def looks_a_second() -> float:
    """How often all modules are looked at, on average of a run of ``RUN_S``."""
    looks, now = 0, 0.0
    while now < RUN_S:
        now += max(LOOK_EVERY_NS / 1e9, now / LOOK_PARTS)
        looks += 1
    return looks / RUN_S


class Loop:
    """One loop with all of it on and off in turn."""

    def __init__(self, make: Callable[[], Step], tells: bool) -> None:
        self._step = make()
        timed(self._step, 5, nothing)
        length = timed(self._step, 20, nothing)
        self.steps, self._learning = max(2, round(BLOCK_S / length)), max(3, round(LEARNING_S / length))
        self._count = count = RunCount(Paths(Path.cwd()), "benchmark", nothing)
        self._began = time.perf_counter()
        count.open(torch)
        assert count.counter is not None and count.signals is not None and count.tracker is not None, count.notes
        self._counter, self._signals, self._tracker = count.counter, count.signals, count.tracker
        self._end = count.step if tells else nothing
        timed(self._step, self.steps, self._end)  # how dense the waits are

    def on(self) -> tuple[float, float]:
        """Seconds a step, and what it takes in all until the hooks have settled."""
        self._signals.attach(torch)
        self._counter.resume()
        settling = LOOK_CALLS + 1 + self._learning
        settled = timed(self._step, settling, self._end)
        length = timed(self._step, self.steps, self._end)
        return length, max(settled - length, 0.0) * settling

    def off(self) -> float:
        """Seconds a step."""
        self._counter.suspend()
        self._signals.detach()
        timed(self._step, self._learning, nothing)
        return timed(self._step, self.steps, nothing)

    def calls(self) -> float:
        """Calls of Python functions that a step has more with all of it on."""
        self.off()
        bare = calls_of(lambda: timed(self._step, CALLS_STEPS, nothing))
        self.on()
        return (calls_of(lambda: timed(self._step, CALLS_STEPS, self._end)) - bare) / CALLS_STEPS

    def close(self) -> None:
        self._count.close()

    def measure(self, blocks: int, order: random.Random) -> dict[str, Any]:
        """The seconds a step of each pair of blocks, and what the counter says."""
        pairs: list[dict[str, float]] = []
        for _ in range(blocks):
            pair = {}
            for mode in order.sample(["on", "off"], 2):
                if mode == "on":
                    pair["on"], pair["look"] = self.on()
                else:
                    pair["off"] = self.off()
            pairs.append(pair)
        phase = max(self._tracker.phases, key=lambda phase: phase.steps)
        thread_s = self._count._background.busy_ns / 1e9 / (time.perf_counter() - self._began)
        look = statistics.median(pair["look"] for pair in pairs)
        return {
            "pairs": pairs,
            "steps": self.steps,
            "look_s": look,
            "beside": look * looks_a_second() + thread_s,
            "own": self._count.overhead_share,
            "one_in": self._counter.one_in(phase),
            "places": len(self._counter.waits()),
            "prices": asdict(self._counter.prices),
            "coldness": self._counter.coldness,
            "calls": self.calls(),
        }


def measure(make: Callable[[], Step], tells: bool, blocks: int, order: random.Random) -> dict[str, Any]:
    loop = Loop(make, tells)
    try:
        return loop.measure(blocks, order)
    finally:
        loop.close()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--blocks", type=int, default=40)
    parser.add_argument("--json", type=Path, help="also write every block's figures here")
    options = parser.parse_args()
    everything: dict[str, Any] = {"device": torch.cuda.get_device_name(), "torch": torch.__version__}
    print(f"{everything['device']}, torch {torch.__version__}, {options.blocks} interleaved blocks")
    print(
        f"{'loop':22} {'ms a step':>10} {'on / off':>9}  {'95 % interval':17} {'look ms':>8} {'one in':>7} {'own':>8} "
        f"{'cold':>5} {'calls':>6}"
    )
    order = random.Random(1)
    for name, (make, tells) in LOOPS.items():
        found = measure(make, tells, options.blocks, order)
        ratios = [pair["on"] / pair["off"] + found["beside"] for pair in found["pairs"]]
        low, high = interval(ratios)
        length = statistics.median(pair["off"] for pair in found["pairs"]) * 1e3
        print(
            f"{name:22} {length:10.3f} {statistics.median(ratios):9.4f}  {low:6.4f} – {high:6.4f}   "
            f"{found['look_s'] * 1e3:8.2f} {found['one_in']:7.1f} {found['own']:8.2%} {found['coldness']:5.1f} "
            f"{found['calls']:6.1f}",
            flush=True,
        )
        everything[name] = found
    print("prices in ns:", {name: round(value) for name, value in found["prices"].items()})
    if options.json:
        options.json.write_text(json.dumps(everything))


if __name__ == "__main__":
    main()
