"""What recording costs: ``python benchmarks/overhead.py`` on a machine with a GPU.

Each block times the same steps (their median) bare, with nothing but CUDA activities recorded (what any trace costs),
in our timed window, in our full window, and under torch.profiler (CPU + CUDA) without and with stacks, in random
order, with no profiler left attached in between. Printed: the paired ratios to bare and to CUDA activities alone
(medians, and the 95 % bootstrap interval of the first) and the time to stop and write the trace.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import random
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch import nn

from syncscope.collect.paths import Paths
from syncscope.collect.profiler import KinetoWindow
from syncscope.collect.sites.recorder import SiteRecorder
from syncscope.collect.sites.stacks import Stacks
from syncscope.collect.sites.threads import Threads
from syncscope.collect.tracefile import TraceFile
from syncscope.schema.recording import FORMAT, RecordedSteps, Recording

Step = Callable[[], Any]
MODES = ("bare", "cuda only", "timed", "full", "torch", "torch+stacks")


def host_bound(device: str = "cuda") -> Step:
    """Forty small layers, Adam and one ``.item()``: the device waits for the host."""
    net = nn.Sequential(*[layer for _ in range(20) for layer in (nn.Linear(128, 128), nn.ReLU())]).to(device)
    optimizer = torch.optim.Adam(net.parameters(), foreach=False)
    x = torch.randn(64, 128, device=device)

    def step() -> None:
        optimizer.zero_grad()
        loss = net(x).square().mean()
        loss.backward()
        optimizer.step()
        loss.item()

    return step


def device_bound(device: str = "cuda") -> Step:
    """Large layers and one ``.item()``: the host waits for the device."""
    net = nn.Sequential(*[nn.Linear(4096, 4096) for _ in range(4)]).to(device)
    optimizer = torch.optim.SGD(net.parameters(), lr=1e-4)
    x = torch.randn(4096, 4096, device=device)

    def step() -> None:
        optimizer.zero_grad()
        loss = net(x).square().mean()
        loss.backward()
        optimizer.step()
        loss.item()

    return step


def small_copies(device: str = "cuda") -> Step:
    """Two hundred small blocking copies."""
    features = [torch.randn(256) for _ in range(200)]

    def step() -> None:
        torch.stack([feature.to(device) for feature in features]).sum().item()

    return step


WORKLOADS: dict[str, tuple[Callable[[], Step], int]] = {
    "host-bound": (host_bound, 10),
    "device-bound": (device_bound, 6),
    "200 small copies": (small_copies, 10),
}


def timed(step: Step, count: int) -> float:
    """Seconds of the median step: every step ends with a wait, and a step that the machine disturbed is no cost."""
    torch.cuda.synchronize()
    times = [time.perf_counter()]
    for _ in range(count):
        step()
        times.append(time.perf_counter())
    return statistics.median(after - before for before, after in itertools.pairwise(times))


def ours(step: Step, count: int, folder: Path, *, cpu: bool) -> tuple[float, float]:
    """Seconds a step in a window of ours, and seconds to stop and write it."""
    stacks, threads = Stacks(Paths(Path.cwd())), Threads()
    window, sites = KinetoWindow(torch, cpu=cpu, on_foreign=lambda: None), SiteRecorder(torch, stacks, threads)
    window.prepare()
    sites.open()
    step()
    window.start()
    length = timed(step, count)
    start = time.perf_counter()
    sites.close()
    exported = window.stop(detach=False)
    frames, numbers = stacks.resolve()
    recording = Recording(
        format=FORMAT,
        version="0",
        steps=RecordedSteps(source="user"),
        frames=frames,
        stacks=numbers,
        sites=sites.take(),
    )
    assert exported is not None and b'"cat": "kernel"' in exported, "the window holds no kernels"
    TraceFile(folder / "trace.json.gz").write(exported, recording)
    return length, time.perf_counter() - start


def torchs(step: Step, count: int, folder: Path, *, stacks: bool, cpu: bool = True) -> tuple[float, float]:
    """The same under torch.profiler: as people use it, or with CUDA activities alone."""
    activities = [torch.profiler.ProfilerActivity.CUDA, *[torch.profiler.ProfilerActivity.CPU][:cpu]]
    profiler = torch.profiler.profile(activities=activities, with_stack=stacks)
    profiler.prepare_trace()
    step()
    profiler.start_trace()
    length = timed(step, count)
    start = time.perf_counter()
    profiler.stop()
    profiler.export_chrome_trace(str(folder / "trace.json.gz"))
    return length, time.perf_counter() - start


def measure(mode: str, step: Step, count: int, folder: Path) -> tuple[float, float]:
    # Kineto takes CUPTI out of the process on its own time (TEARDOWN_CUPTI); until then no step is bare, and no new
    # profile sees anything.
    for _ in range(3):
        step()
        time.sleep(0.05)
    if mode == "bare":
        return timed(step, count), 0.0
    if mode in ("timed", "full"):
        return ours(step, count, folder, cpu=mode == "full")
    return torchs(step, count, folder, stacks=mode == "torch+stacks", cpu=mode != "cuda only")


def interval(values: list[float], seed: int = 0) -> tuple[float, float]:
    """95 % bootstrap interval of the median."""
    draw = random.Random(seed)
    medians = sorted(statistics.median(draw.choices(values, k=len(values))) for _ in range(2000))
    return medians[50], medians[1949]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--blocks", type=int, default=24)
    parser.add_argument("--json", type=Path, help="also write every block's figures here")
    options = parser.parse_args()
    os.environ["TEARDOWN_CUPTI"] = "1"  # else every bare step after the first profile pays for CUPTI
    everything: dict[str, Any] = {"device": torch.cuda.get_device_name(), "torch": torch.__version__}
    print(f"{everything['device']}, torch {torch.__version__}, {options.blocks} interleaved blocks")
    print(f"{'step':18} {'mode':14} {'ms a step':>10} {'ratio':>7}  {'95 % interval':15} {'to cuda':>8} {'write':>8}")
    order = random.Random(1)
    with tempfile.TemporaryDirectory() as scratch:
        for name, (make, count) in WORKLOADS.items():
            step = make()
            for mode in MODES:  # every mode's first use is not counted
                timed(step, count)
                measure(mode, step, count, Path(scratch))
            blocks: list[dict[str, tuple[float, float]]] = []
            for _ in range(options.blocks):
                modes = order.sample(MODES, len(MODES))
                blocks.append({mode: measure(mode, step, count, Path(scratch)) for mode in modes})
            for mode in MODES:
                ratios = [block[mode][0] / block["bare"][0] for block in blocks]
                low, high = interval(ratios)
                floor = statistics.median(block[mode][0] / block["cuda only"][0] for block in blocks)
                length = statistics.median(block[mode][0] for block in blocks) * 1e3
                write = statistics.median(block[mode][1] for block in blocks) * 1e3
                print(
                    f"{name:18} {mode:14} {length:10.3f} {statistics.median(ratios):7.3f}  "
                    f"{low:5.3f} – {high:5.3f}   {floor:8.3f} {write:8.1f}",
                    flush=True,
                )
            everything[name] = blocks
    if options.json:
        options.json.write_text(json.dumps(everything))


if __name__ == "__main__":
    main()
