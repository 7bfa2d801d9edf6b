"""What following the phases of a program costs: ``python benchmarks/phases.py``. Needs PyTorch, no GPU.

Nanoseconds for each signal: the best of several runs with the hooks, less the best without. ``inner`` is a call of a
module inside of another, which is no signal.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

from syncscope.collect.paths import Paths
from syncscope.collect.phases import Phase, PhaseTracker, Signals

CALLS = 20_000
RUNS = 9


class Nobody:
    """Does nothing with what it is told, and wants to hear of each step, or of few."""

    def __init__(self, unheard: int) -> None:
        self._unheard = unheard

    def stepped(self, phase: Phase) -> int:
        return self._unheard

    def changed(self, before: Phase, after: Phase) -> None: ...
    def folded(self, phase: Phase, into: Phase) -> None: ...
    def better_source(self, phase: Phase) -> None: ...


class Nothing(torch.nn.Module):
    def forward(self, x: int) -> int:
        return x


class Many(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.inner = Nothing()

    def forward(self, x: int) -> int:
        for _ in range(CALLS):
            self.inner(x)
        return x


class Still(torch.optim.Optimizer):
    def step(self, closure: Any = None) -> None: ...


class Numbers(torch.utils.data.Dataset[int]):
    def __len__(self) -> int:
        return CALLS

    def __getitem__(self, index: int) -> int:
        return index


NET, MANY = Nothing(), Many()
OPTIMIZER = Still([torch.zeros(1, requires_grad=True)], {})


def call() -> None:
    for _ in range(CALLS):
        NET(1)


def call_below() -> None:
    def step() -> None:
        forward()

    def forward() -> None:
        NET(1)

    for _ in range(CALLS):
        step()


def inner() -> None:
    MANY(1)


def optimizer_step() -> None:
    for _ in range(CALLS):
        OPTIMIZER.step()


def loader_next() -> None:
    for x in torch.utils.data.DataLoader(Numbers(), batch_size=None):
        NET(x)


def training() -> None:
    for x in torch.utils.data.DataLoader(Numbers(), batch_size=None):
        NET(x)
        OPTIMIZER.step()


PROGRAMS = {
    "call of a module": (call, 1),
    "three functions below": (call_below, 1),
    "inner call": (inner, 1),
    "optimizer's step": (optimizer_step, 1),
    "batch and call": (loader_next, 2),
    "batch, call and step": (training, 3),
}


def measure(program: Callable[[], None]) -> float:
    """Nanoseconds of one round."""
    start = time.perf_counter_ns()
    program()
    return (time.perf_counter_ns() - start) / CALLS


def attached(unheard: int) -> Signals:
    signals = Signals(PhaseTracker(Nobody(unheard), Paths(Path(__file__).parent)))
    signals.attach(torch)
    return signals


def measure_at(depth: int) -> float:
    """Nanoseconds of ``PhaseTracker.at`` in an evaluation, ``depth`` functions below its loop."""
    tracker = PhaseTracker(Nobody(0), Paths(Path(__file__).parent))
    signals = Signals(tracker)
    signals.attach(torch)

    def ask(depth: int) -> float:
        if depth:
            return ask(depth - 1)
        frame = sys._getframe()
        return measure(lambda: [tracker.at(frame) for _ in range(CALLS)] and None)

    taken = 0.0
    NET.eval()
    for _ in range(3):
        NET(1)
        taken = ask(depth)
    NET.train()
    signals.detach()
    return taken


def main() -> None:
    taken: dict[str, tuple[list[float], list[float], list[float]]] = {name: ([], [], []) for name in PROGRAMS}
    for _ in range(RUNS):
        for name, (program, _signals) in PROGRAMS.items():
            off, heard, unheard = taken[name]
            off.append(measure(program))
            for times, most in ((heard, 0), (unheard, sys.maxsize)):
                signals = attached(most)
                times.append(measure(program))
                assert not signals.failure, signals.failure
                signals.detach()
    print("nanoseconds a signal  heard unheard, of a round")
    for name, (off, heard, unheard) in taken.items():
        one, other = ((min(on) - min(off)) / PROGRAMS[name][1] for on in (heard, unheard))
        print(f"{name:24s} {one:7.0f} {other:7.0f} {min(off):11.0f}")
    for depth in (0, 8):
        print(f"at, {depth} functions below    {min(measure_at(depth) for _ in range(RUNS)):7.0f} ns")


if __name__ == "__main__":
    main()
