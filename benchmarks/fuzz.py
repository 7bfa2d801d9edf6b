"""Damaged traces through the reader and through everything.

``python -m benchmarks.fuzz --loads 1000000 --whole 20000 --jobs 4``

Each seed is one trace of the recorded ones, cut to some tens of events and damaged (``fixtures/damage.py``).
``--loads`` are only read; ``--whole`` are read, analysed with their pictures, checked with the default policy, and
written in every format. A crash is what is no ``TraceError``; a Python warning counts as one. Crashes are listed by
place with their first seeds, and ``--seed N`` repeats one with its traceback.

``--witnesses`` are whole traces that lost waits of a finding, and still hold what PyTorch said of them
(``fixtures/lost_waits.py``). One that ``check`` passes counts as a crash.

``--log FILE`` keeps what is done, a line for each 250 seeds: the same command goes on from there.
"""

from __future__ import annotations

import argparse
import gzip
import json
import math
import multiprocessing
import os
import random
import resource
import signal
import tempfile
import time
import traceback
import warnings
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from functools import cache
from pathlib import Path
from typing import Any

import msgspec

from fixtures.damage import Document, damage, shorten
from fixtures.labels import TRACES
from fixtures.lost_waits import Target, find_targets, lose
from syncscope.analysis.analyze import analyze_files, annotated, choose_engine
from syncscope.cli.output import RENDERERS, Content
from syncscope.policy import Policy, check_gate
from syncscope.trace import TraceError, load

LONGEST_S = 10.0
"""One trace may take so long, through everything."""

VARIANTS = 16
"""Each recorded trace is cut in so many ways; every seed damages one of them in a way of its own."""

PER_CHUNK = 250
SEEDS_LISTED = 3
MODES = ("loads", "whole", "witnesses")


class Hang(BaseException):
    """A trace took longer than ``LONGEST_S``."""


class Passed(AssertionError):
    """``check`` passes a trace that still says of a wait that is not there."""


class Tally(msgspec.Struct):
    """What became of a range of seeds."""

    mode: str
    first: int = 0
    traces: int = 0
    read: int = 0
    """How many were no ``TraceError``."""
    clean: int = 0
    """How many ``check`` passes."""
    clean_after: dict[str, int] = msgspec.field(default_factory=dict)
    """How many of those each damage was done to."""
    crashes: dict[str, list[int]] = msgspec.field(default_factory=dict)
    """Seeds by place."""
    slowest_s: float = 0.0
    slowest: int = 0
    """The seed of that one."""
    peak_mb: int = 0

    def add(self, other: Tally) -> None:
        """Count ``other`` in."""
        self.traces, self.read, self.clean = (
            self.traces + other.traces,
            self.read + other.read,
            self.clean + other.clean,
        )
        self.clean_after = dict(Counter(self.clean_after) + Counter(other.clean_after))
        for place, seeds in other.crashes.items():
            self.crashes[place] = sorted(self.crashes.get(place, []) + seeds)
        if other.slowest_s > self.slowest_s:
            self.slowest_s, self.slowest = other.slowest_s, other.slowest
        self.peak_mb = max(self.peak_mb, other.peak_mb)

    def lines(self) -> Iterator[str]:
        """The tally in words."""
        crashes = sum(map(len, self.crashes.values()))
        yield (
            f"{self.mode}: {self.traces:,} traces, {self.read:,} read, {crashes:,} crashes; "
            f"slowest {self.slowest_s:.2f} s (seed {self.slowest}), peak {self.peak_mb} MB"
        )
        if self.mode == "whole":
            most = ", ".join(f"{name} {count:,}" for name, count in Counter(self.clean_after).most_common(8))
            yield f"  {self.clean:,} pass the check, after: {most}"
        for place, seeds in sorted(self.crashes.items(), key=lambda item: -len(item[1])):
            yield f"  {len(seeds):,} × {place}, seeds {', '.join(map(str, seeds[:SEEDS_LISTED]))}"


def main() -> None:
    arguments = _parsed()
    warnings.simplefilter("error")
    if arguments.seed is not None:
        with tempfile.TemporaryDirectory() as folder:
            run_seed(arguments.mode, arguments.seed, Path(folder))
        return
    failed = False
    for mode in [mode for mode in MODES if getattr(arguments, mode)]:
        tally = _run(mode, getattr(arguments, mode), arguments)
        print(*tally.lines(), sep="\n", flush=True)
        failed = failed or bool(tally.crashes)
    raise SystemExit(failed)


def _parsed() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--loads", type=int, default=0, metavar="N", help="traces that are only read")
    parser.add_argument("--whole", type=int, default=0, metavar="N", help="traces that take the whole path")
    parser.add_argument("--witnesses", type=int, default=0, metavar="N", help="traces that lost waits")
    parser.add_argument("--first", type=int, default=0, metavar="SEED", help="the first seed of all")
    parser.add_argument("--jobs", type=int, default=1, metavar="N")
    parser.add_argument("--log", type=Path, metavar="FILE", help="keep what is done here, and go on from it")
    parser.add_argument("--seed", type=int, metavar="SEED", help="run one seed in this process")
    parser.add_argument("--mode", choices=MODES, default="whole", help="of --seed")
    return parser.parse_args()


def _run(mode: str, count: int, arguments: argparse.Namespace) -> Tally:
    """Run ``count`` seeds in processes, but for those that the log has."""
    total = Tally(mode)
    done = {}
    if arguments.log is not None and arguments.log.exists():
        logged = (msgspec.json.decode(line, type=Tally) for line in arguments.log.read_bytes().splitlines())
        done = {tally.first: tally for tally in logged if tally.mode == mode}
    starts = range(arguments.first, arguments.first + count, PER_CHUNK)
    for start in starts:
        if start in done:
            total.add(done[start])
    end = arguments.first + count
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(arguments.jobs, mp_context=context) as pool:
        chunks = [pool.submit(run_seeds, mode, s, min(PER_CHUNK, end - s)) for s in starts if s not in done]
        for chunk in as_completed(chunks):
            tally = chunk.result()
            total.add(tally)
            if arguments.log is not None:
                with arguments.log.open("ab") as log:
                    log.write(msgspec.json.encode(tally) + b"\n")
    return total


def run_seeds(mode: str, first: int, count: int) -> Tally:
    """Run ``count`` seeds from ``first`` on, in this process's main thread."""
    tally = Tally(mode, first)
    before = signal.signal(signal.SIGALRM, _raise_hang)
    try:
        with tempfile.TemporaryDirectory(dir=_memory_folder()) as folder, warnings.catch_warnings():
            warnings.simplefilter("error")
            for seed in range(first, first + count):
                _tally_seed(tally, seed, Path(folder))
    finally:
        signal.signal(signal.SIGALRM, before)
    tally.peak_mb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
    return tally


def _tally_seed(tally: Tally, seed: int, folder: Path) -> None:
    start = time.perf_counter()
    signal.setitimer(signal.ITIMER_REAL, LONGEST_S)
    tally.traces += 1
    try:
        done, passed = run_seed(tally.mode, seed, folder)
        tally.read += 1
        tally.clean += passed
        if passed:
            tally.clean_after = dict(Counter(tally.clean_after) + Counter(set(done)))
    except TraceError:
        pass
    except (Exception, Hang) as error:
        tally.crashes.setdefault(_place(error), []).append(seed)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
    if (seconds := time.perf_counter() - start) > tally.slowest_s:
        tally.slowest_s, tally.slowest = seconds, seed


def run_seed(mode: str, seed: int, folder: Path) -> tuple[tuple[str, ...], bool]:
    """Run one seed; its trace is written to ``folder``. Returns its damages, and whether ``check`` passes it."""
    path = folder / "trace.json"
    if mode == "witnesses":
        lose_a_wait(seed, path)
        return ("lost_waits",), False
    data, done = damage(document(seed), seed)
    path.write_bytes(data)
    if mode == "loads":
        load(path, workers=1)
        return done, False
    return done, take_whole_path(path)


def lose_a_wait(seed: int, path: Path) -> None:
    """Write the seed's trace without waits of one of its findings to ``path``, and check it with a gate of that rule.

    Raises ``Passed`` where the check passes.
    """
    chance = random.Random(seed)
    names = _names()
    source = next(one for one in names[seed % len(names) :] + names if _targets(one))
    target = chance.choice(_targets(source))
    path.write_text(json.dumps(lose(_read(source), target, chance)))
    policy = Policy(gate=(target.rule,))
    report, _ = analyze_files([str(path)], choose_engine(), policy=policy)
    if check_gate(report, policy).exit_code == 0:
        raise Passed(f"{target} of {source.relative_to(TRACES)}")


@cache
def _targets(path: Path) -> tuple[Target, ...]:
    return find_targets(_read(path))


def take_whole_path(path: Path) -> bool:
    """Read, analyse, check and write in every format. Returns whether the check passes.

    Raises ``TraceError`` for what is no trace, ``ValueError`` for a number that is not finite, and whatever crashes.
    """
    policy = Policy()
    report, pictures = analyze_files([str(path)], choose_engine(), pictures=True, policy=policy)
    verdict = check_gate(report, policy)
    for place in _not_finite(msgspec.to_builtins((report, pictures, verdict))):
        raise ValueError(f"not finite: {place}")
    content = Content(report, pictures, verdict)
    for name, render in RENDERERS.items():
        text = render(content)
        if name in ("json", "sarif"):
            json.loads(text, parse_constant=_refuse_constant)
    for _ in annotated(path, report.findings):
        pass
    return verdict.exit_code == 0


def _refuse_constant(text: str) -> None:
    raise ValueError(f"not finite: {text} in the JSON")


def document(seed: int) -> Document:
    """The undamaged document of a seed: some tens of events, one in eight times some hundred."""
    names = _names()
    return _short(names[seed % len(names)], seed // len(names) % VARIANTS)


@cache
def _short(path: Path, variant: int) -> Document:
    return shorten(_read(path), variant, 300 if variant % 8 == 0 else 20 + variant * 41 // VARIANTS)


@cache
def _names() -> tuple[Path, ...]:
    return tuple(sorted(TRACES.glob("*/*.json.gz")))


@cache
def _read(path: Path) -> Document:
    decoded: Document = json.loads(gzip.decompress(path.read_bytes()))
    return decoded


def _not_finite(value: Any, place: str = "") -> Iterator[str]:
    """Where in builtins a number is not finite."""
    if isinstance(value, float) and not math.isfinite(value):
        yield place
    elif isinstance(value, dict):
        for key, item in value.items():
            yield from _not_finite(item, f"{place}.{key}")
    elif isinstance(value, list | tuple):
        for item in value:
            yield from _not_finite(item, f"{place}[]")


def _place(error: BaseException) -> str:
    """The error and the last line of ours that it came through."""
    frames = traceback.extract_tb(error.__traceback__)
    ours = [frame for frame in frames if "/syncscope/" in frame.filename] or list(frames)
    last = ours[-1]
    return f"{type(error).__name__}: {str(error)[:80]} at {last.filename.rpartition('/syncscope/')[2]}:{last.lineno}"


def _raise_hang(*_: object) -> None:
    raise Hang(f"took more than {LONGEST_S:.0f} s")


def _memory_folder() -> str | None:
    """A folder in memory, where there is one."""
    return "/dev/shm" if os.access("/dev/shm", os.W_OK) else None


if __name__ == "__main__":
    main()
