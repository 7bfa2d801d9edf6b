"""All of ``analyze`` beside all of HTA and Perfetto's trace processor: ``python -m benchmarks.peers --mb 200 1000``.

The recorded trace with stacks is repeated to each size, in five steps. In every round each program runs once, one after
the other, in a process of its own: our read alone, ``syncscope analyze`` to JSON, the same with the page, the same with
its kept results (``--cache``), both releases of HTA (constructed, then every analysis of one rank), and Perfetto's
trace processor (loaded, then one count of the slices; ``--trace-processor``, the folder that CONTRIBUTING names).
``--own`` leaves the programs of others out. Each keeps the bytecode of what it imports, as an installed package has it.
Figures are medians of the rounds, and memory that of all processes together; ratios are taken in each round, with the
least and the most. ``--write`` puts the table into docs/evidence.md. HTA's releases are installed into ``.hta``,
without what they depend on (the extra ``dev`` has it).
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from benchmarks import evidence
from benchmarks.start import keep_bytecode
from fixtures import repeat

ROOT = Path(__file__).parents[1]
RELEASES = ("HolisticTraceAnalysis==0.5.0", "traceinsight==0.6.1")
STEPS = 5
SAMPLE_S = 0.05
"""Memory is looked at so often."""

READ = """
from syncscope.cli.light import prepare_numpy
prepare_numpy()
import sys
from syncscope.trace.memory import keep_freed
from syncscope.trace.reader import load
keep_freed()
load(sys.argv[1])
"""
ANALYZE = (sys.executable, "-m", "syncscope", "analyze")

HTA = """
import contextlib, io, json, logging, sys, warnings
from hta.trace_analysis import TraceAnalysis

logging.disable(logging.CRITICAL)
warnings.simplefilter("ignore")
with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
    analysis = TraceAnalysis(trace_files={0: sys.argv[1]}, trace_dir="", include_last_profiler_step=True)
    whole = {
        "get_temporal_breakdown": dict(visualize=False),
        "get_idle_time_breakdown": dict(visualize=False),
        "get_gpu_kernel_breakdown": dict(visualize=False),
        "get_gpu_user_annotation_breakdown": dict(visualize=False),
        "get_comm_comp_overlap": dict(visualize=False),
        "get_cuda_kernel_launch_stats": dict(visualize=False),
        "get_queue_length_summary": {},
        "get_queue_length_time_series": {},
        "get_memory_bw_summary": {},
        "get_memory_bw_time_series": {},
        "get_profiler_steps": {},
        "get_frequent_cuda_kernel_sequences": dict(operator_name="aten::mm", output_dir=sys.argv[2], visualize=False),
        "critical_path_analysis": dict(rank=0, annotation="ProfilerStep", instance_id=1),
    }
    failed = []
    for name, options in whole.items():
        try:
            getattr(analysis, name)(**options)
        except Exception as error:
            failed.append(f"{name}: {type(error).__name__}")
print(json.dumps(failed))
"""


class Run(NamedTuple):
    seconds: float
    peak_mb: float
    failed: tuple[str, ...] = ()
    """Analyses that raised."""


class Program(NamedTuple):
    name: str
    command: Sequence[str]
    environment: Mapping[str, str] = {}
    asks: str = ""
    """What it reads on standard input."""


def measure(program: Program, trace: Path, folder: Path) -> Run | None:
    """One run in a process of its own; ``None`` where it fails."""
    with (folder / "out").open("wb") as out:
        begin = time.perf_counter()
        running = subprocess.Popen(
            [{"{trace}": str(trace), "{folder}": str(folder)}.get(part, part) for part in program.command],
            stdin=subprocess.PIPE, stdout=out, stderr=subprocess.DEVNULL, cwd=ROOT,
            env={**keep_bytecode(folder / "bytecode"), **program.environment},
        )  # fmt: skip
        assert running.stdin is not None
        running.stdin.write(program.asks.encode())
        running.stdin.close()
        end, peak = _wait(running)
        took = end - begin
    if running.returncode:
        return None
    said = (folder / "out").read_text(encoding="utf-8").strip().splitlines() if "-c" in program.command else []
    return Run(took, peak, tuple(json.loads(said[-1])) if said else ())


def _wait(running: subprocess.Popen[bytes]) -> tuple[float, float]:
    """When a process has ended, by ``time.perf_counter``, and the most memory that it and its children had at once, in
    MB."""
    import psutil

    ends: list[float] = []
    ended = threading.Event()

    def wait() -> None:
        running.wait()
        ends.append(time.perf_counter())
        ended.set()

    peak, parent = 0, psutil.Process(running.pid)  # before it can be reaped
    threading.Thread(target=wait).start()
    while not ended.wait(SAMPLE_S):
        total = 0
        try:
            for one in (parent, *parent.children(recursive=True)):
                total += one.memory_info().rss
        except psutil.Error:
            continue
        peak = max(peak, total)
    return ends[0], peak / 1e6


def own_programs(folder: Path) -> list[Program]:
    """Our read first, then all of ``analyze``."""
    json_of = (*ANALYZE, "{trace}", "-o", "json=-")
    return [
        Program("syncscope, read alone", (sys.executable, "-c", READ, "{trace}")),
        Program("syncscope analyze", json_of),
        Program("syncscope analyze, with the page", (*json_of, "-o", str(folder / "report.html"))),
        Program("syncscope analyze, kept", (*json_of, "--cache"), {"XDG_CACHE_HOME": str(folder / "cache")}),
    ]


def others(trace_processor: str | None) -> list[Program]:
    """The programs of others."""
    found = []
    for release in RELEASES:
        place = {"PYTHONPATH": str(installed(release))}
        found.append(Program(release.replace("==", " "), (sys.executable, "-c", HTA, "{trace}", "{folder}"), place))
    if trace_processor:
        script = str(ROOT / "tests" / "report" / "trace_processor.mjs")
        asked = json.dumps({"slices": "select count(*) as many from slice"})
        found.append(
            Program("Perfetto's trace processor, loads", ("node", script, trace_processor, "{trace}"), asks=asked)
        )
    return found


def installed(release: str) -> Path:
    """The folder of a release of HTA, which is installed where it is not there."""
    place = ROOT / ".hta" / release
    if not place.is_dir():
        command = [sys.executable, "-m", "pip", "install", "-q", "--no-deps", "--target", str(place), release]
        subprocess.run(command, check=True)
    return place


def rounds(every: Sequence[Program], trace: Path, folder: Path, many: int) -> dict[str, list[Run | None]]:
    """Each program once in each of ``many`` rounds. ``analyze`` runs before, so that its results are kept."""
    for program in every:
        if program.command[: len(ANALYZE)] == ANALYZE:
            measure(program, trace, folder)
    runs: dict[str, list[Run | None]] = {program.name: [] for program in every}
    for _ in range(many):
        for program in every:
            run = measure(program, trace, folder)
            runs[program.name].append(run)
            print(f"  {program.name:36} {'failed' if run is None else f'{run.seconds:8.2f} s'}", flush=True)
    return runs


def table(found: Mapping[str, Mapping[str, Sequence[Run | None]]]) -> str:
    """As markdown, by size and program, with the ratios to the first two programs."""
    lines = [
        "| trace | program | time, s | × read (least–most) | × analyze (least–most) | peak memory, MB | failed |",
        "|---|---|--:|--:|--:|--:|---|",
    ]
    for size, runs in found.items():
        read, analyzed, *_ = runs.values()
        for name, every in runs.items():
            done = [run for run in every if run is not None]
            if not done:
                lines.append(f"| {size} | {name} | fails | | | | |")
                continue
            seconds, peak = (statistics.median(getattr(run, what) for run in done) for what in ("seconds", "peak_mb"))
            ratios = f"{_ratio(every, read)} | {_ratio(every, analyzed)}"
            lines.append(f"| {size} | {name} | {seconds:.2f} | {ratios} | {peak:,.0f} | {', '.join(done[0].failed)} |")
    return "\n".join(lines)


def _ratio(runs: Sequence[Run | None], to: Sequence[Run | None]) -> str:
    """The median of the rounds' ratios, with the least and the most."""
    pairs = [run.seconds / other.seconds for run, other in zip(runs, to, strict=True) if run and other]
    return f"{statistics.median(pairs):.2f} ({min(pairs):.2f}–{max(pairs):.2f})" if pairs else ""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--mb", type=float, nargs="+", default=[200])
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--trace-processor", default=os.environ.get("SYNCSCOPE_TRACE_PROCESSOR"))
    parser.add_argument("--own", action="store_true", help="without the programs of others")
    parser.add_argument("--write", action="store_true", help="put the table into docs/evidence.md")
    args = parser.parse_args()
    found = {}
    with tempfile.TemporaryDirectory() as name:
        folder, trace = Path(name), Path(name) / "trace.json"
        every = own_programs(folder)
        if not args.own:
            every += others(args.trace_processor and str(Path(args.trace_processor).resolve()))
        load = os.getloadavg()[0]
        for mb in args.mb:
            events = repeat.write(trace, base=repeat.BASE, mb=mb, steps=STEPS)
            print(f"{mb:g} MB, {events:,} events")
            found[f"{mb:g} MB, {events:,} events"] = rounds(every, trace, folder, args.runs)
    made = f"{table(found)}\n\n{os.cpu_count()} cores, {args.runs} rounds; load when it began {load:.1f}."
    print(made)
    if args.write:
        evidence.put("peers", made)


if __name__ == "__main__":
    main()
