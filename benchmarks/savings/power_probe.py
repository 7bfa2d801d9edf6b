"""What a recording says of the true step: ``python -m benchmarks.savings.power_probe`` on a machine with a GPU.

Each program runs alone and then under ``syncscope profile``, a fresh process each, and times its own steps. Printed:
the median of its own steps alone and of the recorded bare ones, what was set aside, the steps under the profiler, power
and clock in both windows, the loader, and the stamps. ``--seconds`` is how long each program runs.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from syncscope.schema.recording import GpuWindow, Recording
from syncscope.trace import load

ROOT = Path(__file__).parents[2]

HEAD = """
import json, os, sys, time
import torch
from torch import nn
ends, until = [], float("inf")
def more():
    global until
    ends.append(time.perf_counter())
    if len(ends) == 3:  # CUDA's start takes seconds on a busy machine
        until = ends[-1] + float(sys.argv[1])
    return ends[-1] < until
def report():
    torch.cuda.synchronize()
    json.dump([b - a for a, b in zip(ends, ends[1:])], open(sys.argv[2], "w"))
def pause(seconds):
    began = time.perf_counter()
    while time.perf_counter() - began < seconds:
        pass
"""

GEMM = """
net = nn.Linear(8192, 8192, bias=False).cuda().bfloat16()
opt = torch.optim.SGD(net.parameters(), lr=1e-6)
x = torch.randn(8192, 8192, device="cuda", dtype=torch.bfloat16)
while more():
    opt.zero_grad()
    loss = net(net(x)).square().mean()
    loss.backward()
    opt.step()
    loss.item()
    pause({pause})
report()
"""

COPIES = """
a, b = torch.empty(2**28, device="cuda"), torch.empty(2**28, device="cuda")
w = torch.zeros(1024, device="cuda", requires_grad=True)
opt = torch.optim.SGD([w], lr=0.1)
while more():
    for _ in range(8):
        b.copy_(a)
    w.grad = a[:1024]
    opt.step()
    w.sum().item()
report()
"""

LOADER = """
class Images(torch.utils.data.Dataset):
    def __len__(self):
        return 4000
    def __getitem__(self, index):
        x = torch.full((1, 28, 28), float(index))
        pause(0.00015)
        return x, index % 10
def main():
    convolutions = nn.Conv2d(1, 32, 3), nn.ReLU(), nn.Conv2d(32, 64, 3), nn.ReLU()
    net = nn.Sequential(*convolutions, nn.Flatten(), nn.Linear(64 * 24 * 24, 10)).cuda()
    opt = torch.optim.Adadelta(net.parameters())
    loader = torch.utils.data.DataLoader(Images(), batch_size=64, num_workers={workers}, pin_memory=True)
    while True:
        for x, y in loader:
            if not more():
                return report()
            opt.zero_grad()
            loss = nn.functional.cross_entropy(net(x.cuda()), y.cuda())
            loss.backward()
            opt.step()
            loss.item()
if __name__ == "__main__":
    main()
"""

SMALL = """
net = nn.Sequential(*[layer for _ in range(20) for layer in (nn.Linear(128, 128), nn.ReLU())]).cuda()
opt = torch.optim.Adam(net.parameters(), foreach=False)
x = torch.randn(64, 128, device="cuda")
while more():
    opt.zero_grad()
    loss = net(x).square().mean()
    loss.backward()
    opt.step()
    loss.item()
report()
"""

PROGRAMS = {
    "gemm": GEMM.format(pause=0),
    "gemm, 2 ms gap": GEMM.format(pause=0.002),
    "copies": COPIES,
    "loader, 1 worker": LOADER.format(workers=1),
    "loader, 4 workers": LOADER.format(workers=4),
    "host-bound": SMALL,
}


def run(folder: Path, source: str, seconds: float, *under: str) -> list[float]:
    """The lengths of the steps of the second half, as the program timed them, in ms."""
    (folder / "train.py").write_text(HEAD + source)
    times = folder / "times.json"
    command = [sys.executable, *under, str(folder / "train.py"), str(seconds), str(times)]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise SystemExit(f"{command} failed:\n{done.stdout[-2000:]}\n{done.stderr[-4000:]}")
    if "gpu buffer" in done.stderr.lower():
        print("on stderr:", done.stderr[-500:])
    lengths = [length * 1e3 for length in json.loads(times.read_text())]
    return lengths[len(lengths) // 2 :]


def recorded(folder: Path) -> Recording:
    found = load(folder / "out" / "trace.json.gz").recording
    assert found is not None
    return found


def show(name: str, alone: list[float], recording: Recording) -> None:
    bare, steps, gpu = recording.bare, recording.steps.boundaries_ns, recording.gpu
    print(f"\n{name}: {statistics.median(alone):.3f} ms alone (of {len(alone)} steps)")
    if bare is not None:
        lengths = sorted(length / 1e6 for length in bare.steps_ns)
        print(
            f"  bare {statistics.median(lengths):.3f} ms ({len(lengths)} steps, quartiles"
            f" {lengths[len(lengths) // 4]:.3f} {lengths[3 * len(lengths) // 4]:.3f}), drain {_ms(bare.drain_ns)};"
            f" set aside {[(one.reason, round(one.length_ns / 1e6, 1)) for one in bare.set_aside]}"
        )
    lengths = [(end - begin) / 1e6 for begin, end in itertools.pairwise(steps)]
    print(f"  recorded {' '.join(f'{length:.3f}' for length in lengths)} ms")
    if gpu is not None:
        print(f"  gpu: limit {gpu.power_limit_w} W, at most {gpu.max_sm_clock_mhz} MHz; missing: {gpu.missing}")
        for label, window in (("bare", gpu.bare), ("timed", gpu.timed)):
            print(f"    {label}: {_window(window)}")
    if bare is not None:
        print(f"  loader: {bare.loader}")
        for stamp in bare.stamps:
            ends = statistics.median(stamp.ends_ns) / 1e6
            begins = f"{statistics.median(stamp.begins_ns) / 1e6:.3f}" if stamp.begins_ns else ""
            print(f"    {stamp.event} {stamp.name} #{stamp.ordinal}: {begins} – {ends:.3f} ms")
    for note in recording.notes:
        print(f"  note: {note}")


def _ms(length_ns: int | None) -> str:
    return "unknown" if length_ns is None else f"{length_ns / 1e6:.3f} ms"


def _window(window: GpuWindow | None) -> Any:
    if window is None:
        return "nothing"
    return (
        f"{window.power_w} W, SM {window.sm_clock_mhz} MHz ({window.sm_clock_low_mhz}–{window.sm_clock_high_mhz}),"
        f" memory {window.memory_clock_mhz} MHz, {window.temperature_c} °C, {window.throttled}, {window.samples}"
        f" samples in {_ms(window.length_ns)}"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=7.0)
    parser.add_argument("names", nargs="*", default=list(PROGRAMS))
    arguments = parser.parse_args()
    for name in arguments.names:
        with tempfile.TemporaryDirectory(prefix="syncscope-") as place:
            folder = Path(place)
            alone = run(folder, PROGRAMS[name], arguments.seconds / 2)
            under = ("-m", "syncscope", "profile", "-o", str(folder / "out"))
            beside = run(folder, PROGRAMS[name], arguments.seconds, *under)
            show(name, alone, recorded(folder))
            print(f"  beside the count: {statistics.median(beside):.3f} ms")


if __name__ == "__main__":
    main()
