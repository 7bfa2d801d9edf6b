"""Time and record the pairs: ``python -m benchmarks.savings.record`` on a machine with a GPU.

Each pair is timed and recorded twice, in fresh processes: by windows, and in full mode. The processes import side by
side and then run one after the other, each when the one before has ended, so that nothing else is at work while one is
timed. What is there already is not done again. ``--ranks 2`` does the pairs of two ranks instead, which need as many
GPUs.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.public.running import Place
from benchmarks.savings.catalogue import Pair, pairs
from benchmarks.savings.patched import PATCHED
from benchmarks.savings.ranks import environment, free_port
from benchmarks.savings.scores import MODES, RECORDINGS, Measured, traces
from benchmarks.savings.slim import keep
from benchmarks.savings.whole import prove
from syncscope import Report

AT_ONCE = 40
"""Processes that import side by side."""
PATIENCE = 90.0
"""Seconds that one process may take."""
LINGER = 12.0
"""Seconds that one may take to end, and to write its reports, when its first traces are written: short windows come
first, then those of the recording, then bare steps for some seconds."""


@dataclass
class Job:
    """A pair in one mode: one process a rank."""

    pair: Pair
    mode: str
    out: Path
    scratch: Path
    processes: list[subprocess.Popen[str]]

    @property
    def traces(self) -> list[Path]:
        ranks = [f".rank{rank}" for rank in range(self.pair.ranks)] if self.pair.ranks > 1 else [""]
        return [self.scratch / f"trace{rank}.json.gz" for rank in ranks]

    def ready(self) -> None:
        """Wait until they have imported all."""
        for process in self.processes:
            assert process.stdout is not None
            process.stdout.readline()

    def run(self) -> None:
        """Let it begin; returns when it has ended. One that goes on when its traces are written, since it might still
        begin to train, is interrupted."""
        for process in self.processes:
            assert process.stdin is not None
            process.stdin.write("go\n")
            process.stdin.flush()
        end, interrupt = time.monotonic() + PATIENCE, float("inf")
        while running := [process for process in self.processes if process.poll() is None]:
            now = time.monotonic()
            if interrupt == float("inf") and all(trace.exists() for trace in self.traces):
                interrupt = now + LINGER
            if now > end or any(process.poll() for process in self.processes):
                self.kill()
            elif now > interrupt:
                interrupt = end
                for process in running:
                    process.send_signal(signal.SIGINT)
            time.sleep(0.02)

    def kill(self) -> None:
        for process in self.processes:
            process.kill()

    def keep(self) -> str:
        """Keep what it wrote; one line about it."""
        report = self.scratch / "report.json"
        if not report.exists():
            logs = "\n".join(log.read_text()[-600:].strip() for log in sorted(self.scratch.glob("log*")))
            return f"{self.pair.name:28} {self.mode:8} failed: {logs}"
        for trace, target in zip(self.traces, traces(self.pair, self.mode, self.out), strict=True):
            keep(trace, target)
        shutil.copyfile(self.scratch / "timings.json", self.out / self.pair.name / f"{MODES[self.mode]}.timings.json")
        return f"{self.pair.name:28} {self.mode:8} " + self._summary(Report.from_json(report.read_bytes()))

    def _summary(self, report: Report) -> str:
        timings = json.loads((self.scratch / "timings.json").read_text())
        measured = Measured.of(timings["before_ms"], timings["after_ms"])
        trace, answered = report.traces[0], [one for one in report.findings if self.pair.answers(one)]
        busy = trace.overlap.device_busy_ms if trace.overlap else float("nan")
        return (
            f"step {measured.step:7.3f}  saved {measured.saving:7.3f}  in {len(timings['before_ms'])} blocks, "
            f"interval {100 * measured.width:.1f} %  bare {trace.steps.bare_ms or 0:7.3f}  "
            f"profiled {trace.steps.profiled_ms or 0:7.3f}  busy {busy:7.3f}  "
            f"{sum(trace.stat().st_size for trace in self.traces) // 1024:4d} KB  "
            f"{'+'.join(f.rule for f in answered) or 'NO FINDING'}"
        )


def start(wanted: tuple[Pair, str], out: Path, scratch: Path) -> Job:
    pair, mode = wanted
    folder = scratch / f"{pair.name}.{mode}"
    folder.mkdir()
    processes, port = [], free_port()
    for rank in range(pair.ranks):
        with (folder / f"log{rank}").open("w") as log:
            process = subprocess.Popen(
                [sys.executable, "-m", "benchmarks.savings.worker", pair.name, mode, str(folder)],
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log, text=True,
                env=os.environ | (environment(rank, pair.ranks, port) if pair.ranks > 1 else {}),
            )  # fmt: skip
        processes.append(process)
    return Job(pair, mode, out, folder, processes)


def missing(
    out: Path, only: Sequence[str], ranks: int, new: bool = False, contact: int | None = None
) -> Iterator[tuple[Pair, str]]:
    """What is not yet in ``out``: of the ``new`` pairs, which are recorded by windows only, those of one ``contact`` if
    it is given; or of all others."""
    for pair, mode in itertools.product(pairs(), MODES):
        named = not only or any(names(name, pair, mode) for name in only)
        wanted = pair.fresh == new and (mode == "windows" or not new) and contact in (None, pair.contact)
        if named and wanted and pair.ranks == ranks and not all(trace.exists() for trace in traces(pair, mode, out)):
            yield pair, mode


def one_size_first(wanted: Iterable[tuple[Pair, str]]) -> list[tuple[Pair, str]]:
    """A size of each program before the second of any: a run that is cut short has seen every program."""
    seen: dict[tuple[str, str], int] = {}
    keys = []
    for number, (pair, mode) in enumerate(wanted):
        turn = seen[pair.program, mode] = seen.get((pair.program, mode), 0) + 1
        keys.append((turn, number, pair, mode))
    return [(pair, mode) for _, _, pair, mode in sorted(keys, key=lambda key: key[:2])]


def as_named(wanted: Iterable[tuple[Pair, str]], only: Sequence[str]) -> list[tuple[Pair, str]]:
    """In the order in which they were named: a run that is cut short has seen what was named first."""
    return sorted(wanted, key=lambda each: min(at for at, name in enumerate(only) if names(name, *each)))


def names(name: str, pair: Pair, mode: str) -> bool:
    """Whether a name is that of a pair in a mode, of the pair or of its program."""
    return f"{pair.name}.{mode}.".startswith(f"{name}.")


def record(wanted: list[tuple[Pair, str]], out: Path, scratch: Path, deadline: float) -> None:
    """Start them all, wait until all are ready, run them one after the other."""
    jobs = [start(each, out, scratch) for each in wanted]
    for job in jobs:
        job.ready()
    for job in jobs:
        if time.monotonic() > deadline:
            job.kill()
            continue
        job.run()
        print(job.keep(), flush=True)


def prove_patched(options: argparse.Namespace, deadline: float) -> None:
    """Time and record the patched programs that are named and not there yet."""
    out, only = options.out.resolve(), options.only
    wanted = [
        one
        for one in PATCHED
        if (not only or one.name in only)
        and options.contact in (None, one.pair.contact)
        and not all(trace.exists() for trace in traces(one.pair, "windows", out))
    ]
    place = Place(options.programs.resolve(), options.data.resolve(), options.work.resolve(), Path.cwd(), ("--stop",))
    prove(wanted, place, out, options.processes, options.at_once, deadline)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("out", type=Path, nargs="?", default=RECORDINGS)
    parser.add_argument("--only", nargs="+", default=(), help="programs, pairs or pair.mode, in this order")
    parser.add_argument("--ranks", type=int, default=1, help="pairs of so many ranks")
    parser.add_argument("--seconds", type=float, default=1e9, help="begin nothing new after so many")
    parser.add_argument("--new", action="store_true", help="the fresh pairs instead, and the patched programs")
    parser.add_argument(
        "--contact", type=int, help="with --new: only the pairs, and the patched programs, of this contact"
    )
    parser.add_argument("--programs", type=Path, help="with --new: the folder with the clones of public programs")
    parser.add_argument("--data", type=Path, help="with --new: the folder that benchmarks.public.data filled")
    parser.add_argument("--work", type=Path, default=Path("/tmp/patched"), help="for copies of the clones")
    parser.add_argument("--processes", type=int, default=10, help="with --new: of each version of a patched program")
    parser.add_argument("--at-once", type=int, default=2, help="with --new: patched programs that start side by side")
    options = parser.parse_args()
    deadline = time.monotonic() + options.seconds
    if options.programs and options.data:
        prove_patched(options, deadline)
    asked = options.out, options.only, options.ranks, options.new, options.contact
    wanted = as_named(missing(*asked), options.only) if options.only else one_size_first(missing(*asked))
    with tempfile.TemporaryDirectory() as scratch:
        for begin in range(0, len(wanted), AT_ONCE):
            if time.monotonic() < deadline:
                record(wanted[begin : begin + AT_ONCE], options.out, Path(scratch), deadline)
    left = list(missing(*asked))
    print(f"{len(left)} recordings missing" if left else "all recorded")
    return 1 if left else 0


if __name__ == "__main__":
    sys.exit(main())
