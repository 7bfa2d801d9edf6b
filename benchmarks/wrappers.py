"""What one wrapped call costs: ``python benchmarks/wrappers.py`` on a machine with a GPU.

Median over 100,000 calls with the wrapper less the median without it, in µs.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

from syncscope.collect.paths import Paths
from syncscope.collect.sites.recorder import SiteRecorder
from syncscope.collect.sites.stacks import Stacks
from syncscope.collect.sites.threads import Threads

CALLS = 100_000


def median(call: Callable[[], Any]) -> float:
    """Median seconds of one call."""
    now, times = time.perf_counter, []
    for _ in range(CALLS):
        start = now()
        call()
        times.append(now() - start)
    return statistics.median(times)


def main() -> None:
    event = torch.cuda.Event()
    event.record()
    torch.cuda.synchronize()
    host, pinned = torch.ones(1), torch.ones(1).pin_memory()
    device = torch.ones(1, device="cuda")
    calls: dict[str, Callable[[], Any]] = {
        "torch.cuda.synchronize()": torch.cuda.synchronize,
        "Event.synchronize()": lambda: event.synchronize(),
        "torch.cuda.empty_cache()": torch.cuda.empty_cache,
        "Tensor.to, same device": lambda: host.to("cpu"),
        "Tensor.to, non_blocking copy": lambda: pinned.to("cuda", non_blocking=True),
        "Tensor.copy_, non_blocking": lambda: device.copy_(pinned, non_blocking=True),
        "Tensor.pin_memory()": lambda: pinned.pin_memory(),
        "torch.ops.aten.relu": lambda: torch.ops.aten.relu(host),
    }
    print(f"{torch.cuda.get_device_name()}, torch {torch.__version__}, median of {CALLS} calls, µs")
    print(f"{'call':30} {'off':>8} {'on':>8} {'more':>8}")
    for name, call in calls.items():
        off = median(call)
        sites = SiteRecorder(torch, Stacks(Paths(Path.cwd())), Threads())
        sites.open()
        try:
            on = median(call)
        finally:
            sites.close()
        print(f"{name:30} {off * 1e6:8.2f} {on * 1e6:8.2f} {(on - off) * 1e6:8.2f}", flush=True)


if __name__ == "__main__":
    main()
