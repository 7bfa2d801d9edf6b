"""How time and memory grow with what a trace holds: ``python -m benchmarks.scaling [WHAT …] [--sizes N …] [--write]``.

One thing is varied at a time: events, waits on a thousand lines, lines of ten waits, kernels' names, streams, steps,
and ranks. Each trace is read, judged and reported on in a process of its own, and the exponent ``k`` of
``time = c × size^k`` is fitted: 1 is linear. Events come from a repeated recording, ranks from a recording of two, and
the others from ``fixtures/many_waits.py``. numpy is told what the command line tells it. Stages are seconds of CPU of
the one process, so that neither other programs nor the workers' start count; of several ``--runs`` the quickest counts.
``--write`` puts one table of all into docs/evidence.md. Ends with 1 where an exponent is more than ``MOST``. Needs
``pip install 'syncscope[bench]'``.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from benchmarks import evidence, measure
from fixtures import many_waits, ranks, repeat

STAGES = ("read", "timeline and rules", "savings", "report")
MOST = 1.05
WAITS_A_LINE = 10

CODE = """
from syncscope.cli.light import prepare_numpy
prepare_numpy()
import json, sys, time
from syncscope import rules
from syncscope.analysis.merge import merge
from syncscope.analysis.rank import Job, begin_report, estimate_report
from syncscope.report import text
from syncscope.timeline import Timeline
from syncscope.trace.reader import load

job = Job(codes=frozenset(rule.code for rule in rules.select()))
times = [time.process_time()]
trace = load(sys.argv[1], workers=1)
times.append(time.process_time())
timeline = Timeline(trace)
hits, not_checked = rules.find(timeline)
timeline.info()
times.append(time.process_time())
report = estimate_report(*begin_report(timeline, hits, not_checked, job))
times.append(time.process_time())
report = merge([report])
report.to_json(), text.to_text(report)
times.append(time.process_time())
print(json.dumps([after - before for before, after in zip(times, times[1:])]))
"""

CODE_OF_RANKS = """
from syncscope.cli.light import prepare_numpy
prepare_numpy()
import json, sys, time
from syncscope.analysis.analyze import analyze

before = time.process_time()
report = analyze(sys.argv[1])
judged = time.process_time()
report.to_json()
print(json.dumps([judged - before, 0.0, 0.0, time.process_time() - judged]))
"""


class Row(NamedTuple):
    size: int
    """How many of what is varied."""
    stages: list[float]
    peak_mb: float

    @property
    def total(self) -> float:
        return sum(self.stages)


Write = Callable[[Path, int], int]
"""Writes a trace, or a folder of them, of some size; returns what that really is."""


class Varied(NamedTuple):
    """What is varied."""

    write: Write
    sizes: tuple[int, ...]
    code: str = CODE


def exponent(sizes: Sequence[int], values: Sequence[float]) -> float:
    """``k`` of the power that fits best; NaN for less than two sizes or where something took no time at all."""
    if len(sizes) < 2 or min(values) <= 0:
        return float("nan")
    return float(np.polyfit(np.log(sizes), np.log(values), 1)[0])


def measured(write: Write, sizes: Sequence[int], code: str = CODE, runs: int = 1) -> list[Row]:
    """A row for each size, the quickest of so many ``runs``."""
    rows = []
    for size in sizes:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "trace.json"
            real = write(path, size)
            done = [measure.run(code, str(path)) for _ in range(runs)]
        rows.append(min((Row(real, one.output, one.peak_mb) for one in done), key=lambda row: row.total))
        print(f"  {real:10,} {rows[-1].total:8.2f} s {rows[-1].peak_mb:8.0f} MB", flush=True)
    return rows


def repeated(base: Path) -> Write:
    """Writes a trace repeated to so many events."""
    return lambda path, events: repeat.write(path, base=base, events=events)


def waiting(path: Path, waits: int) -> int:
    """Write a trace of so many waits on a thousand lines."""
    many_waits.write(path, waits=waits, lines=min(waits, 1000))
    return waits


def _on_lines(path: Path, lines: int) -> int:
    many_waits.write(path, waits=WAITS_A_LINE * lines, lines=lines)
    return lines


def _in_steps(path: Path, steps: int) -> int:
    many_waits.write(path, waits=WAITS_A_LINE * steps, lines=WAITS_A_LINE)
    return steps


def _named(path: Path, names: int) -> int:
    many_waits.write(path, waits=50_000, lines=500, names=names)
    return names


def _on_streams(path: Path, streams: int) -> int:
    many_waits.write(path, waits=50_000, lines=500, streams=streams)
    return streams


def _of_ranks(path: Path, number: int) -> int:
    path.mkdir()
    ranks.write_ranks(path, number)
    return number


VARIED = {
    "events": Varied(repeated(repeat.BASE), (300_000, 1_000_000, 3_000_000, 10_000_000)),
    "waits": Varied(waiting, (12_500, 25_000, 50_000, 100_000)),
    "lines": Varied(_on_lines, (1_250, 2_500, 5_000, 10_000)),
    "names": Varied(_named, (500, 5_000, 50_000)),
    "streams": Varied(_on_streams, (2, 8, 32)),
    "steps": Varied(_in_steps, (1_250, 2_500, 5_000, 10_000)),
    "ranks": Varied(_of_ranks, (8, 16, 32, 64), CODE_OF_RANKS),
}


def table(rows: list[Row], what: str) -> str:
    """As markdown, the fitted exponents below."""
    lines = [f"| {what} | {' | '.join(f'{stage}, s' for stage in STAGES)} | all, s | peak memory, MB |"]
    lines.append("|" + "---|" * (len(STAGES) + 3))
    for row in rows:
        stages = " | ".join(f"{seconds:.2f}" for seconds in row.stages)
        lines.append(f"| {row.size:,} | {stages} | {row.total:.2f} | {row.peak_mb:,.0f} |")
    sizes = [row.size for row in rows]
    columns = [*zip(*(row.stages for row in rows), strict=True), [row.total for row in rows]]
    fitted = [exponent(sizes, list(column)) for column in [*columns, [row.peak_mb for row in rows]]]
    return "\n".join([*lines, f"| exponent | {' | '.join(f'{k:.2f}' for k in fitted)} |"])


def grown(rows: Sequence[Row]) -> float:
    """The exponent of all stages together."""
    return exponent([row.size for row in rows], [row.total for row in rows])


def summary(found: Mapping[str, Sequence[Row]]) -> str:
    """As markdown, a row for each thing that was varied."""
    lines = ["| varied | sizes | CPU, s | exponent | peak memory, MB |", "|---|---|---|--:|---|"]
    for what, rows in found.items():
        sizes, seconds = " · ".join(f"{row.size:,}" for row in rows), " · ".join(f"{row.total:.2f}" for row in rows)
        peaks = " · ".join(f"{row.peak_mb:,.0f}" for row in rows)
        lines.append(f"| {what} | {sizes} | {seconds} | {grown(rows):.2f} | {peaks} |")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", nargs="*", metavar="WHAT", help=f"what is varied: {', '.join(VARIED)}; default: all")
    parser.add_argument("--sizes", type=int, nargs="+", help="instead of the usual ones")
    parser.add_argument("--runs", type=int, default=1, help="of each size; the quickest counts")
    parser.add_argument("--write", action="store_true", help="put a table of all into docs/evidence.md")
    args = parser.parse_args()
    if unknown := set(args.what) - set(VARIED):
        parser.error(f"unknown: {', '.join(sorted(unknown))}")
    if args.write and (args.what or args.sizes):
        parser.error("--write is of everything in its usual sizes")
    load, began = os.getloadavg()[0], time.monotonic()
    found: dict[str, list[Row]] = {}
    for what in args.what or VARIED:
        varied = VARIED[what]
        print(what)
        found[what] = measured(varied.write, args.sizes or varied.sizes, varied.code, args.runs)
        print(table(found[what], what), flush=True)
        print(f"\nall together: {what}^{grown(found[what]):.2f}, at most {MOST} wanted\n")
    minutes = (time.monotonic() - began) / 60
    made = (
        f"{summary(found)}\n\n{os.cpu_count()} cores, the quickest of {args.runs}; "
        f"load when it began {load:.1f}; it took {minutes:.0f} minutes."
    )
    print(made)
    if args.write:
        evidence.put("growth", made)
    sys.exit(1 if any(grown(rows) > MOST for rows in found.values()) else 0)


if __name__ == "__main__":
    main()
