"""One fresh process of ``record``: time a pair, both versions in turn, then record the one before the fix.

``python -m benchmarks.savings.worker PAIR MODE FOLDER`` imports all it needs, says ``ready`` and begins when a line
comes on standard input: imports disturb nobody's timing. A pair of several ranks has as many such processes, told of
each other as by torchrun; the first one's times count.
"""

from __future__ import annotations

import gc
import json
import math
import os
import random
import statistics
import sys
import time
from pathlib import Path
from types import ModuleType
from typing import Any, TypeVar

import torch
import torch.distributed as dist

import syncscope.analysis.analyze  # all that a recording needs at its end
import syncscope.cli
from benchmarks.savings.catalogue import Pair, pairs
from benchmarks.savings.scores import Measured
from syncscope.collect.clocks import ClockWatch

T = TypeVar("T")

BLOCKS, MOST_BLOCKS = 20, 60
"""Blocks of each version: at least so many, at most so many."""
NARROW = 0.015
"""Width of the measured interval, as a share of the step, that is narrow enough."""
WARM = 2
"""Steps at the beginning of a block that are not timed."""
BLOCK_MS = 60
"""Time of a block, within ``FEWEST`` to ``MOST`` steps."""
FEWEST, MOST = 8, 60
LONG_MS, LONG_BLOCKS = 200, 8
"""Time and least number of the blocks of a pair that needs time to settle. They differ by some per cent, so there are
up to three times as many."""
FRESH_NARROW, FRESH_BLOCKS = 0.01, 300
"""``NARROW`` and ``MOST_BLOCKS`` of fresh pairs."""
FRESH_BLOCK_MS, FRESH_FEWEST = 30, 5
"""``BLOCK_MS`` and ``FEWEST`` of fresh pairs: a shared host is now faster and now slower, for tenths of a second, and
what two blocks side by side have in common does not count."""
FRESH_S, LIMITED_S = 7.0, 11.0
"""Seconds after which a fresh pair's blocks end, once there are as many as are needed; of one at the power limit."""
LOOK = 10
"""Blocks between two looks at the interval, which take as long as one or two blocks."""
ENOUGH = 0.25
"""Share of what is near within which an interval is narrow enough, too."""
RECORD_AFTER_MS = 1500
"""Time of the steps before the first that is recorded: clock, power and temperature settle."""


def block_ms(step: Any, count: int, warm: int = WARM) -> float:
    """Milliseconds a step, from the end of the warm steps' work on the device to the end of the last step's.

    Timed by the device, so that neither the first launches nor the last wait of a block counts.
    """
    begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    for _ in range(warm):
        step()
    begin.record()
    for _ in range(count):
        step()
    end.record()
    torch.cuda.synchronize()
    return float(begin.elapsed_time(end)) / count


def agreed(value: T) -> T:
    """The first rank's value, on every rank: all must make the same steps."""
    if not (dist.is_available() and dist.is_initialized()):
        return value
    values = [value]
    dist.broadcast_object_list(values)
    return values[0]


def settled(before: list[float], after: list[float], narrow: float = NARROW, most: int = MOST_BLOCKS) -> bool:
    """Whether the interval is narrow, or too wide for all blocks to make it narrow enough to be scored: it goes with
    the root of their number."""
    measured = Measured.of(before, after)
    least = (measured.high - measured.low) * (len(before) / most) ** 0.5
    width = measured.high - measured.low
    return width <= max(narrow * measured.step, ENOUGH * measured.allowed) or least > 2 * measured.allowed


def timings(program: ModuleType, pair: Pair) -> dict[str, Any]:
    """Both versions in turn, in random order within each block. Garbage is collected between blocks only."""
    versions = {"before": program.before(*pair.sizes), "after": program.after(*pair.sizes)}
    for step in versions.values():  # the first steps load kernels and fill the allocator
        block_ms(step, FEWEST)
    length = block_ms(versions["before"], FEWEST)
    usual, least = (FRESH_BLOCK_MS, FRESH_FEWEST) if pair.fresh else (BLOCK_MS, FEWEST)
    wanted = max(round((LONG_MS if pair.settle_ms else usual) / length), least)
    count = agreed(wanted if pair.settle_ms else min(wanted, MOST))
    warm = max(WARM, round(pair.settle_ms / length))
    fewest = LONG_BLOCKS if pair.settle_ms else BLOCKS
    narrow, most = (FRESH_NARROW, FRESH_BLOCKS) if pair.fresh else (NARROW, MOST_BLOCKS)
    most = 3 * LONG_BLOCKS if pair.settle_ms else most
    blocks: dict[str, list[float]] = {name: [] for name in versions}
    clocks, spans = ClockWatch(), {name: list[tuple[int, int]]() for name in versions}
    if pair.limited:
        clocks.open(torch)
    order = random.Random(0)
    gc.collect()
    gc.freeze()
    gc.disable()
    until = time.monotonic() + (LIMITED_S if pair.limited else FRESH_S) if pair.fresh else math.inf
    for done in range(most):
        late = time.monotonic() > until
        looks = done >= fewest and done % LOOK == 0
        if done >= fewest and agreed(late or (looks and settled(blocks["before"], blocks["after"], narrow, most))):
            break
        for name in order.sample(list(versions), 2):
            begin = time.time_ns()
            blocks[name].append(round(block_ms(versions[name], count, warm), 5))
            spans[name].append((begin + round(pair.settle_ms * 1e6), time.time_ns()))
            gc.collect()
    gc.enable()
    gc.unfreeze()
    clocks.close()
    figures = {"steps_a_block": count, "before_ms": blocks["before"], "after_ms": blocks["after"]}
    if pair.limited:
        figures |= {f"{name}_gpu": [watched(clocks, span) for span in spans[name]] for name in versions}
    return figures


def watched(clocks: ClockWatch, span: tuple[int, int]) -> tuple[float | None, float | None, float | None]:
    """Watts, MHz and the share of samples at the power limit in a block; ``None`` where there was no sample."""
    window = clocks.about(None, span).timed
    if window is None:
        return None, None, None
    return window.power_w, window.sm_clock_mhz, window.throttled.get("power cap", 0.0)


def steps_before(lengths_ms: list[float]) -> int:
    """How many steps to let pass before a recording, by what they took when they were timed."""
    return round(RECORD_AFTER_MS / statistics.median(lengths_ms))


def main() -> None:
    name, mode, folder = sys.argv[1:]
    pair = next(pair for pair in pairs() if pair.name == name)
    program = pair.load()
    print("ready", flush=True)
    sys.stdin.readline()
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # what a program prints goes nowhere
    figures = {"device": torch.cuda.get_device_name(), "torch": torch.__version__, **timings(program, pair)}
    if os.environ.get("RANK", "0") == "0":
        (Path(folder) / "timings.json").write_text(json.dumps(figures))
    gc.collect()
    torch.cuda.empty_cache()
    # A rank that stopped in the middle would leave the others waiting for it.
    alone = ["--stop", "--profile-at", str(steps_before(figures["before_ms"]))] if pair.ranks == 1 else []
    sys.argv = ["syncscope", "profile", *alone, "--mode", mode, "-o", folder, str(pair.script), pair.size]
    syncscope.cli.main()


if __name__ == "__main__":
    main()
