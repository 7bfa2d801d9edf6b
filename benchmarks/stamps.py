"""What the stamps of a bare step cost: ``python -m benchmarks.stamps``. Needs PyTorch, no GPU.

Nanoseconds of processor time for each moment: the median of several rounds with stamps, less the median without; both
follow the phases.
With ``--gpu`` also whole steps on a GPU: the ratio of steps with stamps, with the GPU's sensors sampled, and with both,
to steps with neither, in interleaved blocks, with the 95 % bootstrap interval of the median.
"""

from __future__ import annotations

import argparse
import random
import statistics
import time
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import torch

from benchmarks.overhead import device_bound, host_bound
from benchmarks.phases import NET, OPTIMIZER, Nobody, Numbers
from syncscope.collect.bare.moments import HostMoments
from syncscope.collect.clocks import ClockWatch
from syncscope.collect.paths import Paths
from syncscope.collect.phases import PhaseTracker, Signals
from syncscope.collect.sites.stacks import Stacks
from syncscope.collect.sites.sync_debug import MESSAGE, sync_debug_mode

STEPS = 2_000
ROUNDS = 15
BLOCKS = 20
BLOCK_S = 0.4

PATHS = Paths(Path(__file__).parent)


def calls() -> None:
    NET(1)


def steps() -> None:
    OPTIMIZER.step()


def waits() -> None:
    warnings.warn(MESSAGE, stacklevel=1)


def make_batches() -> Callable[[], None]:
    loader = iter(torch.utils.data.DataLoader(Numbers(), batch_size=None))
    return lambda: next(loader)


def per_moment(make: Callable[[], Callable[[], Any]], host: HostMoments, *, stamps: bool) -> float:
    program = make()
    if stamps:
        host.open()
    began = time.thread_time_ns()
    for _ in range(STEPS):
        program()
        host.take()
    taken = (time.thread_time_ns() - began) / STEPS
    host.close()
    return taken


def on_cpu(host: HostMoments) -> None:
    programs: dict[str, Callable[[], Callable[[], Any]]] = {
        "forward": lambda: calls, "optimizer": lambda: steps, "loader": make_batches, "wait": lambda: waits,
    }  # fmt: skip
    for name, make in programs.items():
        taken: dict[bool, list[float]] = {False: [], True: []}
        for _ in range(ROUNDS):
            for stamps in (False, True):
                taken[stamps].append(per_moment(make, host, stamps=stamps))
        off, on = (statistics.median(taken[stamps]) for stamps in (False, True))
        print(f"{name:10s} {on - off:6.0f} ns a moment, of {off:.0f} ns a round")


def on_gpu(host: HostMoments) -> None:
    for name, make in (("host-bound", host_bound), ("device-bound", device_bound)):
        step, clocks = make(), ClockWatch()
        kinds = {"neither": (False, False), "stamps": (True, False), "sensors": (False, True), "both": (True, True)}
        lengths: dict[str, list[float]] = {kind: [] for kind in kinds}
        for _ in range(BLOCKS):
            for kind in random.sample(list(kinds), len(kinds)):
                lengths[kind].append(_block(step, host, clocks, *kinds[kind]))
        print(f"{name}: {statistics.median(lengths['neither']):.3f} ms a step")
        for kind in ("stamps", "sensors", "both"):
            ratios = [on / off for on, off in zip(lengths[kind], lengths["neither"], strict=True)]
            low, high = interval(ratios)
            print(f"  {kind:8s} {statistics.median(ratios):.4f} [{low:.4f}, {high:.4f}]")
        print(f"  {clocks.about((0, time.time_ns()), None)}")


def _block(step: Callable[[], Any], host: HostMoments, clocks: ClockWatch, stamps: bool, sensors: bool) -> float:
    """The median length of a step, in ms."""
    if sensors:
        clocks.open(torch)
    if stamps:
        host.open()
    step()
    lengths, ends = [], time.perf_counter() + BLOCK_S
    while (began := time.perf_counter()) < ends:
        step()
        host.take()
        lengths.append((time.perf_counter() - began) * 1e3)
    host.close()
    clocks.close()
    return statistics.median(lengths)


def interval(ratios: Sequence[float], tries: int = 2000) -> tuple[float, float]:
    draw = random.Random(0)
    medians = sorted(statistics.median(draw.choices(ratios, k=len(ratios))) for _ in range(tries))
    return medians[tries // 40], medians[-tries // 40]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--gpu", action="store_true")
    gpu = parser.parse_args().gpu
    signals = Signals(PhaseTracker(Nobody(), PATHS))
    signals.attach(torch)
    host = HostMoments(torch, Stacks(PATHS), signals)
    if gpu:
        torch.cuda.init()
    else:  # a build for the CPU has no such mode
        torch._C._cuda_get_sync_debug_mode = lambda: 0
        torch._C._cuda_set_sync_debug_mode = lambda mode: None
    sync_debug_mode.listen(torch, lambda frame: None)  # as while waits are counted
    (on_gpu if gpu else on_cpu)(host)


if __name__ == "__main__":
    main()
