"""Time the tutorial's lines as the tutorial does, with no profiler: ``python notebooks/measure.py [OUT.json]``.

Needs a GPU and PyTorch, and for the generation loop transformers. Times are milliseconds, medians of ``REPEATS`` calls
after warm ones, each between two waits for the device.
"""

from __future__ import annotations

import json
import statistics
import sys
import time
import warnings
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import torch
from torch import nn

OUT = Path(__file__).parent / "recorded" / "measured.json"
REPEATS = 15
TRIES = 100
SLEEP = 20_000_000
"""Cycles that keep a stream busy, some 10 ms, so that a race is not won by chance."""


def milliseconds(call: Callable[[], object], repeats: int = REPEATS, warm: int = 2) -> float:
    found = []
    for _ in range(warm + repeats):
        torch.cuda.synchronize()
        begin = time.perf_counter()
        call()
        torch.cuda.synchronize()
        found.append((time.perf_counter() - begin) * 1e3)
    return round(statistics.median(found[warm:]), 4)


def small_copies() -> dict[str, float]:
    """A thousand tensors of 4 kB, copied one by one."""
    tensors = [torch.randn(1000) for _ in range(1000)]
    return {
        "to(cuda)": milliseconds(lambda: [tensor.to("cuda") for tensor in tensors]),
        "to(cuda, non_blocking=True)": milliseconds(lambda: [tensor.to("cuda", non_blocking=True) for tensor in tensors]),
    }


def one_copy(threads: int) -> dict[str, float]:
    """One tensor of 4 MB, with so many threads of PyTorch's on the host: pinning is a copy that they share."""
    torch.set_num_threads(threads)
    pageable, pinned = torch.randn(1_000_000), torch.randn(1_000_000).pin_memory()
    return {
        "pageable.to(cuda)": milliseconds(lambda: pageable.to("cuda"), 100),
        "pinned.to(cuda)": milliseconds(lambda: pinned.to("cuda"), 100),
        "pageable.pin_memory()": milliseconds(lambda: pageable.pin_memory(), 100),
        "pageable.pin_memory().to(cuda)": milliseconds(lambda: pageable.pin_memory().to("cuda"), 100),
    }


def many_copies(threads: int) -> dict[str, float]:
    """Two hundred tensors of 4 MB in the tutorial's six ways, with so many threads; and pinning them in one thread of
    Python and in four."""
    torch.set_num_threads(threads)
    pageable = [torch.randn(1_000_000) for _ in range(200)]
    pinned = [tensor.pin_memory() for tensor in pageable]

    def pin_all(threads: int) -> None:
        with ThreadPoolExecutor(threads) as pool:
            list(pool.map(torch.Tensor.pin_memory, pageable))

    ways: dict[str, Callable[[], object]] = {
        "pageable": lambda: [tensor.to("cuda") for tensor in pageable],
        "pageable, non-blocking": lambda: [tensor.to("cuda", non_blocking=True) for tensor in pageable],
        "pinned": lambda: [tensor.to("cuda") for tensor in pinned],
        "pinned, non-blocking": lambda: [tensor.to("cuda", non_blocking=True) for tensor in pinned],
        "pin and copy": lambda: [tensor.pin_memory().to("cuda") for tensor in pageable],
        "pin and copy, non-blocking": lambda: [tensor.pin_memory().to("cuda", non_blocking=True) for tensor in pageable],
        "pin in one Python thread": lambda: pin_all(1),
        "pin in four Python threads": lambda: pin_all(4),
    }
    return {name: milliseconds(way, 7) for name, way in ways.items()}


def enqueueing() -> list[float]:
    """What the host takes to enqueue the same fifty layers, pass after pass, while nobody waits."""
    net = nn.Sequential(*(nn.Linear(2048, 2048, device="cuda") for _ in range(50))).requires_grad_(False)
    inputs = torch.randn(4096, 2048, device="cuda")
    net(inputs)
    torch.cuda.synchronize()
    found = []
    for _ in range(40):
        begin = time.perf_counter()
        net(inputs)
        found.append(round((time.perf_counter() - begin) * 1e3, 3))
    torch.cuda.synchronize()
    return found


def first_wrong(right: Callable[[], bool]) -> int | None:
    """The number of the first try, from 0, that gives a wrong result; ``None`` when all are right."""
    for number in range(TRIES):
        torch.cuda.synchronize()
        torch.cuda._sleep(SLEEP)
        if not right():
            return number
    return None


def races() -> dict[str, int | None]:
    side = torch.cuda.Stream()
    ones = torch.ones(1 << 20, device="cuda")

    def read() -> bool:
        return bool(ones.to("cpu", non_blocking=True).mean() == 1)

    def read_after_wait() -> bool:
        host = ones.to("cpu", non_blocking=True)
        torch.cuda.synchronize()
        return bool(host.mean() == 1)

    def overwrite(source: torch.Tensor) -> bool:
        source.fill_(1)
        arrived = source.to("cuda", non_blocking=True)
        source.zero_()
        return bool((arrived == 1).all())

    def streams(wait: bool) -> bool:
        written = torch.zeros(1 << 20, device="cuda")
        torch.cuda.synchronize()
        torch.cuda._sleep(SLEEP)
        written.add_(1)
        if wait:
            side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            total = written.sum()
        torch.cuda.synchronize()
        return bool(total == 1 << 20)

    pageable, pinned = torch.ones(1 << 20), torch.ones(1 << 20, pin_memory=True)
    return {
        "read a non-blocking copy": first_wrong(read),
        "read it after a wait": first_wrong(read_after_wait),
        "overwrite a pinned source": first_wrong(lambda: overwrite(pinned)),
        "overwrite a pageable source": first_wrong(lambda: overwrite(pageable)),
        "sum on a side stream": first_wrong(lambda: streams(wait=False)),
        "sum on it after wait_stream": first_wrong(lambda: streams(wait=True)),
    }


def generation(tokens: int = 24) -> dict[str, Any] | None:
    """PyTorch's own warnings of waits while GPT-2 (its shape, random weights) generates; ``None`` without transformers."""
    if find_spec("transformers") is None:
        return None
    import transformers

    torch.manual_seed(0)
    model = transformers.GPT2LMHeadModel(transformers.GPT2Config(eos_token_id=None, pad_token_id=0)).to("cuda").eval()
    prompt = torch.randint(50_000, (4, 16), device="cuda")

    def generate() -> None:
        model.generate(prompt, max_new_tokens=tokens, do_sample=True)

    took = milliseconds(generate, 5)
    torch.cuda.set_sync_debug_mode("warn")
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        generate()
    torch.cuda.set_sync_debug_mode("default")
    seen = [warning for warning in caught if "called a synchronizing CUDA operation" in str(warning.message)]
    lines = Counter(f"{warning.filename.rpartition('site-packages/')[2]}:{warning.lineno}" for warning in seen)
    return {"transformers": transformers.__version__, "tokens": tokens, "ms": took, "lines": dict(lines.most_common())}


def measure() -> dict[str, Any]:
    threads = torch.get_num_threads()
    small = small_copies()
    # One thread is what torch.utils.benchmark, the tutorial's timer, leaves a program; the other is what it has.
    one, many = ({str(count): way(count) for count in (1, threads)} for way in (one_copy, many_copies))
    return {
        "device": torch.cuda.get_device_name(),
        "torch": torch.__version__,
        "threads": threads,
        "small_copies_ms": small,
        "one_copy_ms": one,
        "many_copies_ms": many,
        "enqueueing_ms": enqueueing(),
        "races_first_wrong": races(),
        "generation": generation(),
    }


if __name__ == "__main__":
    out = Path(sys.argv[1]) if len(sys.argv) > 1 else OUT
    out.parent.mkdir(exist_ok=True)
    out.write_text(json.dumps(measure(), indent=2) + "\n", encoding="utf-8")
