"""Run Python in a new process and measure its seconds of CPU and the peak memory of it and its children.

Peak memory is the sum of the resident sets of the process and its children, sampled every 10 ms (needs psutil).
Sampling takes part of a processor, so what is timed on all processors runs once more without it. The bytecode of what
is imported is kept, whatever ``PYTHONDONTWRITEBYTECODE`` says: the reader's workers import, too.
"""

from __future__ import annotations

import json
import math
import os
import subprocess
import sys
import time
from dataclasses import dataclass
from typing import Any

import psutil

EVERY_S = 0.01


@dataclass(frozen=True)
class Measured:
    """What the code printed last, as JSON, and what it took."""

    output: Any
    cpu_s: float
    peak_mb: float
    """NaN where it was not measured."""


def run(code: str, *arguments: str, python: str = sys.executable, memory: bool = True) -> Measured:
    """Run ``code``, which prints a line of JSON last, and look at its ``memory``. Raises ``SystemExit`` with its errors
    where it fails."""
    before = os.times()
    env = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    with subprocess.Popen(
        [python, "-c", code, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=env
    ) as process:
        peak = _watch(process) if memory else math.nan
        out, err = process.communicate()
    after = os.times()
    if process.returncode != 0:
        raise SystemExit(f"{python} failed: {err.decode(errors='replace')[-2000:]}")
    cpu = after.children_user + after.children_system - before.children_user - before.children_system
    return Measured(json.loads(out.decode().strip().splitlines()[-1]), cpu, peak / 1e6)


def _watch(process: subprocess.Popen[bytes]) -> int:
    peak = 0
    root = psutil.Process(process.pid)
    while process.poll() is None:
        total = 0
        for one in [root, *_below(root)]:
            try:
                total += one.memory_info().rss
            except psutil.Error:
                continue
        peak = max(peak, total)
        time.sleep(EVERY_S)
    return peak


def _below(root: psutil.Process) -> list[psutil.Process]:
    try:
        return root.children(recursive=True)
    except psutil.Error:
        return []
