"""How time and memory grow with a trace, and with its findings: ``python -m benchmarks.scaling``.

Reads and judges a repeated trace of each size, each in a process of its own, and fits the exponent ``k`` of
``time = c × events^k``: 1 is linear. ``--waits`` does the same for traces of so many waits, ten of them on each line
(``fixtures/many_waits.py``), where findings grow with events. Stages are seconds of CPU of the one process, so that
neither other programs nor the workers' start count. Needs ``pip install 'syncscope[bench]'``.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import numpy as np

from benchmarks import measure
from fixtures import many_waits, repeat

SIZES = (100_000, 300_000, 1_000_000, 3_000_000)
STAGES = ("read", "timeline and rules", "savings")
MOST = 1.1
WAITS_A_LINE = 10

CODE = """
import json, sys, time
from syncscope import rules
from syncscope.estimate import estimate_savings, prepare
from syncscope.timeline import Timeline
from syncscope.trace.reader import load

times = [time.process_time()]
trace = load(sys.argv[1], workers=1)
times.append(time.process_time())
timeline = Timeline(trace)
hits, _ = rules.find(timeline)
timeline.info()
times.append(time.process_time())
estimate_savings(prepare(timeline, hits, None))
times.append(time.process_time())
print(json.dumps([after - before for before, after in zip(times, times[1:])]))
"""


class Row(NamedTuple):
    events: int
    stages: list[float]
    peak_mb: float

    @property
    def total(self) -> float:
        return sum(self.stages)


def exponent(sizes: list[int], values: list[float]) -> float:
    """``k`` of the power that fits best; NaN for less than two sizes or where something took no time at all."""
    if len(sizes) < 2 or min(values) <= 0:
        return float("nan")
    return float(np.polyfit(np.log(sizes), np.log(values), 1)[0])


def measured(write: Callable[[Path, int], int], sizes: list[int]) -> list[Row]:
    """A row for each size; ``write`` makes the trace of one, and says how many events it has."""
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "trace.json"
        for size in sizes:
            events = write(path, size)
            done = measure.run(CODE, str(path))
            rows.append(Row(events, done.output, done.peak_mb))
            print(f"  {events:10,} events {rows[-1].total:8.2f} s {done.peak_mb:8.0f} MB", flush=True)
    return rows


def repeated(base: Path) -> Callable[[Path, int], int]:
    """Writes a trace repeated to so many events."""
    return lambda path, events: repeat.write(path, base=base, events=events)


def waiting(path: Path, waits: int) -> int:
    """Write a trace of so many waits."""
    return many_waits.write(path, waits=waits, lines=max(1, waits // WAITS_A_LINE))


def table(rows: list[Row]) -> str:
    """As markdown, the fitted exponents below."""
    lines = [f"| events | {' | '.join(f'{stage}, s' for stage in STAGES)} | all, s | peak memory, MB |"]
    lines.append("|" + "---|" * (len(STAGES) + 3))
    for row in rows:
        stages = " | ".join(f"{seconds:.2f}" for seconds in row.stages)
        lines.append(f"| {row.events:,} | {stages} | {row.total:.2f} | {row.peak_mb:,.0f} |")
    sizes = [row.events for row in rows]
    columns = [*zip(*(row.stages for row in rows), strict=True), [row.total for row in rows]]
    fitted = [exponent(sizes, list(column)) for column in [*columns, [row.peak_mb for row in rows]]]
    return "\n".join([*lines, f"| exponent | {' | '.join(f'{k:.2f}' for k in fitted)} |"])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--events", type=int, nargs="+", default=list(SIZES))
    parser.add_argument("--trace", type=Path, default=repeat.BASE, help="what is repeated")
    parser.add_argument("--waits", type=int, nargs="+", help="instead: traces of so many waits")
    args = parser.parse_args()
    rows = measured(waiting, args.waits) if args.waits else measured(repeated(args.trace), args.events)
    print(table(rows))
    grown = exponent([row.events for row in rows], [row.total for row in rows])
    print(f"\nall together: events^{grown:.2f}, at most {MOST} wanted")


if __name__ == "__main__":
    main()
