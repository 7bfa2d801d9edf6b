"""Time and record the pairs: ``python -m benchmarks.savings.record`` on a machine with a GPU.

Each pair is timed and recorded twice, in fresh processes: by windows, and in full mode. The processes import side by
side and then run one after the other, so that nothing else is at work while one is timed. What is there already is
not done again.
"""

from __future__ import annotations

import argparse
import itertools
import json
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.savings.catalogue import Pair, pairs
from benchmarks.savings.scores import MODES, RECORDINGS
from syncscope import Report

AT_ONCE = 22
"""Processes that import side by side."""
PATIENCE = 90.0
"""Seconds that one process may take."""


@dataclass
class Job:
    """One process: a pair in one mode."""

    pair: Pair
    mode: str
    target: Path
    scratch: Path
    process: subprocess.Popen[str]

    @property
    def trace(self) -> Path:
        return self.scratch / "trace.json.gz"

    def run(self) -> None:
        """Let it begin; returns when its trace is written, while it may still write its reports."""
        assert self.process.stdin is not None
        self.process.stdin.write("go\n")
        self.process.stdin.flush()
        end = time.monotonic() + PATIENCE
        while self.process.poll() is None and not self.trace.exists():
            if time.monotonic() > end:
                self.process.kill()
            time.sleep(0.02)

    def keep(self) -> str:
        """Wait for its end and keep what it wrote; one line about it."""
        try:
            self.process.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            self.process.kill()
        report = self.scratch / "report.json"
        if not report.exists():
            return f"{self.pair.name:28} {self.mode:8} failed: " + (self.scratch / "log").read_text()[-600:].strip()
        self.target.mkdir(parents=True, exist_ok=True)
        stem = MODES[self.mode]
        shutil.copyfile(self.scratch / "timings.json", self.target / f"{stem}.timings.json")
        shutil.copyfile(self.trace, self.target / f"{stem}.json.gz")
        return f"{self.pair.name:28} {self.mode:8} " + self._summary(Report.from_json(report.read_bytes()))

    def _summary(self, report: Report) -> str:
        timings = json.loads((self.scratch / "timings.json").read_text())
        before, after = (statistics.median(timings[f"{version}_ms"]) for version in ("before", "after"))
        trace, answered = report.traces[0], self.pair.answered(report.findings)
        busy = trace.overlap.device_busy_ms if trace.overlap else float("nan")
        return (
            f"before {before:7.3f}  after {after:7.3f}  bare {trace.steps.bare_ms or 0:7.3f}  "
            f"profiled {trace.steps.profiled_ms or 0:7.3f}  busy {busy:7.3f}  "
            f"{self.trace.stat().st_size // 1024:4d} KB  {'+'.join(f.rule for f in answered) or 'NO FINDING'}"
        )


def start(wanted: tuple[Pair, str], out: Path, scratch: Path) -> Job:
    pair, mode = wanted
    folder = scratch / f"{pair.name}.{mode}"
    folder.mkdir()
    with (folder / "log").open("w") as log:
        process = subprocess.Popen(
            [sys.executable, "-m", "benchmarks.savings.worker", pair.name, mode, str(folder)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log, text=True,
        )  # fmt: skip
    return Job(pair, mode, out / pair.name, folder, process)


def missing(out: Path, only: Sequence[str]) -> Iterator[tuple[Pair, str]]:
    """What is not yet in ``out``."""
    for pair, mode in itertools.product(pairs(), MODES):
        named = not only or pair.name in only or pair.program in only
        if named and not (out / pair.name / f"{MODES[mode]}.json.gz").exists():
            yield pair, mode


def record(wanted: list[tuple[Pair, str]], out: Path, scratch: Path, deadline: float) -> None:
    """Start them all, wait until all are ready, run them one after the other."""
    jobs = [start(each, out, scratch) for each in wanted]
    for job in jobs:
        assert job.process.stdout is not None
        job.process.stdout.readline()
    last: Job | None = None
    for job in jobs:
        if time.monotonic() > deadline:
            job.process.kill()
            continue
        job.run()
        if last is not None:
            print(last.keep(), flush=True)
        last = job
    if last is not None:
        print(last.keep(), flush=True)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("out", type=Path, nargs="?", default=RECORDINGS)
    parser.add_argument("--only", nargs="+", default=(), help="pairs or programs")
    parser.add_argument("--seconds", type=float, default=1e9, help="begin nothing new after so many")
    options = parser.parse_args()
    deadline = time.monotonic() + options.seconds
    wanted = list(missing(options.out, options.only))
    with tempfile.TemporaryDirectory() as scratch:
        for begin in range(0, len(wanted), AT_ONCE):
            if time.monotonic() < deadline:
                record(wanted[begin : begin + AT_ONCE], options.out, Path(scratch), deadline)
    left = list(missing(options.out, options.only))
    print(f"{len(left)} recordings missing" if left else "all recorded")
    return 1 if left else 0


if __name__ == "__main__":
    sys.exit(main())
