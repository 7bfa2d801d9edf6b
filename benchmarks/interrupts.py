"""Ctrl-C at random moments of ``syncscope analyze``: ``python -m benchmarks.interrupts --moments 40``.

One large trace, which worker processes decode, and several files, which a pool of processes reads, are each
interrupted at moments from the start to the end, as a terminal does it: the whole process group gets SIGINT. Each run
must end within ``LONGEST_S`` with status 130 (or its own, where it was done), print no traceback, and leave no process.

The start is the command's first import. What comes before it is Python's own, and how long that takes says nothing.
"""

from __future__ import annotations

import argparse
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

from fixtures import repeat

LONGEST_S = 10.0
MARK = "SYNCSCOPE_INTERRUPTED"
"""An environment variable by which the processes of a run are found, whatever their session."""

LAUNCH = """
import os, runpy, sys

class Begun:
    def find_spec(self, name, path=None, target=None):
        if name == "syncscope.cli":
            sys.meta_path.remove(self)
            os.write({pipe}, b"!")
            os.close({pipe})

sys.meta_path.insert(0, Begun())
runpy.run_module("syncscope", run_name="__main__", alter_sys=True)
"""
"""``python -m syncscope`` that writes to ``pipe`` when ``main`` imports the commands."""

IMPORTS_S = 0.8
"""A third of the interrupts come while the command is being imported."""


class Ending(NamedTuple):
    after_s: float
    status: int | None
    """``None`` where it did not end in time."""
    took_s: float
    err: str
    left: list[int]

    def faults(self) -> list[str]:
        """What is wrong with it."""
        wrong = []
        if self.status is None:
            wrong.append("did not end")
        elif self.status not in (0, 130, -signal.SIGINT):
            wrong.append(f"status {self.status}")
        elif self.took_s > LONGEST_S:
            wrong.append(f"took {self.took_s:.1f} s")
        if "Traceback" in self.err or "Exception ignored" in self.err or len(self.err.splitlines()) > 1:
            wrong.append("noise")
        if self.left:
            wrong.append(f"left {len(self.left)} processes")
        return wrong


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--moments", type=int, default=40, metavar="N", help="for each of the two")
    parser.add_argument("--events", type=int, default=120_000, metavar="N", help="of the large trace")
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        big = Path(folder) / "big.json"
        repeat.write(big, events=arguments.events)
        small = [Path(folder) / f"rank{number}.json" for number in range(6)]
        for path in small:
            repeat.write(path, events=arguments.events // 10)
        bad = run_moments("one large trace", [str(big)], arguments.moments, arguments.seed)
        bad += run_moments(
            "six traces, three at once", [*map(str, small), "--jobs", "3"], arguments.moments, arguments.seed
        )
    raise SystemExit(bool(bad))


def run_moments(name: str, arguments: list[str], moments: int, seed: int) -> int:
    """Interrupt the command at so many moments; returns how many went wrong."""
    whole = interrupt(arguments, None)
    chance = random.Random(seed)
    ends = [whole.took_s if number % 3 else min(IMPORTS_S, whole.took_s) for number in range(moments)]
    endings = [interrupt(arguments, chance.uniform(0.0, end)) for end in ends]
    bad = [ending for ending in endings if ending.faults()]
    done = sum(ending.status == 0 for ending in endings)
    slowest = max(ending.took_s for ending in endings)
    print(
        f"{name}: {whole.took_s:.1f} s undisturbed (status {whole.status}); {moments} interrupts, "
        f"{done} after the end, {len(bad)} wrong; the slowest ended {slowest:.2f} s after",
        flush=True,
    )
    for ending in bad:
        print(f"  after {ending.after_s:.3f} s: {', '.join(ending.faults())}\n{ending.err}")
    return len(bad)


def interrupt(arguments: list[str], after_s: float | None) -> Ending:
    """Run the command and interrupt its process group ``after_s`` its start; never where that is ``None``."""
    mark = f"{os.getpid()}-{time.monotonic_ns()}"
    process = launch(arguments, mark)
    start = time.monotonic()
    try:
        if after_s is not None:
            try:
                process.wait(after_s)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGINT)
            start = time.monotonic()
        try:
            _, err = process.communicate(timeout=60 if after_s is None else LONGEST_S * 2)
        except subprocess.TimeoutExpired:
            return Ending(after_s or 0.0, None, time.monotonic() - start, "", marked(mark))
        took = time.monotonic() - start
        deadline = time.monotonic() + LONGEST_S
        while (left := marked(mark)) and time.monotonic() < deadline:
            time.sleep(0.05)
        return Ending(after_s or 0.0, process.returncode, took, err, left)
    finally:
        for pid in marked(mark):
            os.kill(pid, signal.SIGKILL)


def launch(arguments: list[str], mark: str) -> subprocess.Popen[str]:
    """The command, in a process group of its own, at the moment when its ``main`` begins; or ended, if that fails."""
    reader, writer = os.pipe()
    process = subprocess.Popen(
        [sys.executable, "-c", LAUNCH.format(pipe=writer), "analyze", *arguments],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, MARK: mark},
        start_new_session=True,
        pass_fds=[writer],
        preexec_fn=heed_interrupts,
    )
    os.close(writer)
    os.read(reader, 1)
    os.close(reader)
    return process


def heed_interrupts() -> None:
    """Runs in a child before its program: a shell's background jobs, and what they start, ignore SIGINT."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def marked(mark: str) -> list[int]:
    """The living processes that were started with this mark, and theirs."""
    wanted = f"{MARK}={mark}".encode()
    found = []
    for folder in Path("/proc").iterdir():
        try:
            if folder.name.isdecimal() and wanted in (folder / "environ").read_bytes().split(b"\0"):
                found.append(int(folder.name))
        except OSError:
            continue
    return found


if __name__ == "__main__":
    main()
