"""How fast a trace is read, beside others: ``python -m benchmarks.read --mb 1000 --steps 5 200 --hta PYTHON``.

The trace is the recorded one with stacks, repeated to the size (``fixtures/repeat.py``), and lies in the page cache.
Each reader runs in a process of its own; its own imports do not count, all else does. ``simdjson`` only tokenises, and
``json`` makes one frame of the raw events; HTA (HolisticTraceAnalysis in an environment of its own, whose interpreter
``--hta`` or ``HTA_PYTHON`` names) constructs ``TraceAnalysis``. Needs ``pip install 'syncscope[bench]'``.
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

from benchmarks import measure
from fixtures import repeat

_TIMED = "import sys, time; path = sys.argv[1]; {imports}; start = time.perf_counter(); {work}; "
_TOLD = "print(time.perf_counter() - start)"


class Reader(NamedTuple):
    name: str
    imports: str
    work: str

    def code(self) -> str:
        return _TIMED.format(imports=self.imports, work=self.work) + _TOLD


_OWN = "from syncscope.trace.reader import load"
OURS = Reader("syncscope", _OWN, "load(path)")
ALONE = Reader("syncscope, one process", _OWN, "load(path, workers=1)")
SIMDJSON = Reader(
    "simdjson, tokens only", "import simdjson; data = open(path, 'rb').read()", "simdjson.Parser().parse(data)"
)
JSON = Reader(
    "json and a DataFrame",
    "import json, pandas",
    "pandas.DataFrame(json.load(open(path))['traceEvents'])",
)
HTA = Reader("HTA", "from hta.trace_analysis import TraceAnalysis", "TraceAnalysis(trace_files={0: path})")


class Row(NamedTuple):
    name: str
    trace: str
    seconds: float
    cpu_s: float
    peak_mb: float


def measured(reader: Reader, path: Path, trace: str, runs: int, python: str | None = None) -> Row:
    """The median of ``runs``, and the memory of one more; of a single run, its own."""

    def run(memory: bool) -> measure.Measured:
        return measure.run(reader.code(), str(path), python=python or sys.executable, memory=memory)

    watched = run(memory=True)
    done = [run(memory=False) for _ in range(runs)] if runs > 1 else [watched]
    row = Row(
        reader.name,
        trace,
        statistics.median(one.output for one in done),
        statistics.median(one.cpu_s for one in done),
        watched.peak_mb,
    )
    print(
        f"  {row.name:28} {row.trace:16} {row.seconds:8.2f} s  {row.cpu_s:8.2f} s CPU  {row.peak_mb:8.0f} MB",
        flush=True,
    )
    return row


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--mb", type=float, default=200)
    parser.add_argument("--steps", type=int, nargs="+", default=[5, 200])
    parser.add_argument("--runs", type=int, default=3, help="of ours and of simdjson; of the slow ones, one")
    parser.add_argument("--hta", default=os.environ.get("HTA_PYTHON"), help="interpreter of an environment with HTA")
    parser.add_argument("--trace", type=Path, default=repeat.BASE, help="what is repeated")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        rows = _all(Path(folder), args)
    print(table(rows, args.mb))


def _all(folder: Path, args: argparse.Namespace) -> list[Row]:
    rows = []
    for steps in args.steps:
        path, trace = folder / "trace.json", f"{steps} steps"
        events = repeat.write(path, base=args.trace, mb=args.mb, steps=steps)
        print(f"{args.mb:g} MB, {events:,} events, {steps} steps")
        rows += [measured(reader, path, trace, args.runs) for reader in (SIMDJSON, OURS)]
        if args.hta:
            rows.append(measured(HTA, path, trace, 1, args.hta))
    rows.append(measured(ALONE, path, trace, args.runs))
    rows.append(measured(JSON, path, trace, 1))
    path.unlink()
    repeat.write(folder / "trace.json.gz", base=args.trace, mb=args.mb, steps=steps)
    rows.append(measured(OURS, folder / "trace.json.gz", f"{trace}, gzip", args.runs))
    os.environ["XDG_CACHE_HOME"] = str(folder)
    cached = Reader("syncscope, kept columns", _OWN, "load(path, cache=True)")
    measure.run(cached.code(), str(folder / "trace.json.gz"))
    rows.append(measured(cached, folder / "trace.json.gz", f"{trace}, gzip", args.runs))
    return rows


def table(rows: list[Row], mb: float) -> str:
    """As markdown; ratios are to our own read of the same trace."""
    own = {row.trace: row.seconds for row in rows if row.name == OURS.name}
    lines = [
        f"| {mb:g} MB with stacks | | time, s | × ours | CPU, s | peak memory, MB |",
        "|---|---|---|---|---|---|",
    ]
    for row in rows:
        ratio = row.seconds / own[row.trace]
        lines.append(
            f"| {row.name} | {row.trace} | {row.seconds:.2f} | {ratio:.2f} | {row.cpu_s:.1f} | {row.peak_mb:,.0f} |"
        )
    return "\n".join(lines)


if __name__ == "__main__":
    main()
