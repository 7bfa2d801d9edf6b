"""How fast many ranks are read, by number of workers, and what the client needs: ``python -m benchmarks.ranks``.

Writes ``--ranks`` files (``fixtures/ranks.py``). For each engine and number of workers, and for fewer ranks, a new
process analyses the folder. Peak memory is resident memory: the client's comes from the operating system, the largest
worker's is sampled five times a second.

A second table is of longer ranks, an eighth as many: of ``--events`` events each, made by repeating recordings. Its
time is the processor's for ``syncscope analyze`` in one process, its start too, divided by the ranks.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any

import msgspec
import psutil

from fixtures.ranks import LONGER, write_longer_ranks, write_ranks

ROOT = Path(__file__).parents[1]


def client(folder: str, jobs: int, scheduler: str | None) -> None:
    """Analyse the folder and print the time and memory as JSON."""
    from syncscope.analysis.analyze import analyze

    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    started = time.perf_counter()
    report = analyze(folder, jobs=jobs, scheduler=scheduler)
    took = time.perf_counter() - started
    between = report.between_ranks
    assert between is not None and len(between.ranks) == len(report.traces)
    figures = {
        "ranks": len(report.traces), "wall": took, "start_mb": before / 1000,
        "client_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1000,
        "report_mb": len(msgspec.json.encode(report)) / 1e6, "late": sum(f.rule == "DST601" for f in report.findings),
    }  # fmt: skip
    print(json.dumps(figures))


def measure(folder: Path, jobs: int, scheduler: str | None = None) -> dict[str, Any]:
    """Figures of a new client process and of its workers: its children, or the cluster's, which are children of this
    process."""
    command = [sys.executable, "-m", "benchmarks.ranks", "--client", str(folder), "--jobs", str(jobs)]
    command += ["--scheduler", scheduler] if scheduler else []
    me = psutil.Process()
    before = {process: _seconds(process) for process in me.children(recursive=True)}
    cpu: dict[psutil.Process, float] = {}
    largest = 0
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=ROOT) as running:
        while running.poll() is None:
            for process in me.children(recursive=True):
                with suppress(psutil.Error):
                    cpu[process] = _seconds(process) - before.get(process, 0.0)
                    if process.pid != running.pid:
                        largest = max(largest, process.memory_info().rss)
            time.sleep(0.2)
        assert running.returncode == 0 and running.stdout is not None
        figures: dict[str, Any] = json.loads(running.stdout.read().splitlines()[-1])
    return figures | {"cpu": sum(cpu.values()), "worker_mb": largest / 1e6 if largest else None}


def _seconds(process: psutil.Process) -> float:
    times = process.cpu_times()
    return float(times.user + times.system)


def measure_on_dask(folder: Path, workers: int) -> dict[str, Any]:
    """The same with dask workers, each a process of this machine with one thread, without dask's own profiler."""
    import dask
    from distributed import LocalCluster

    dask.config.set({"distributed.worker.profile.enabled": False})

    with LocalCluster(n_workers=workers, threads_per_worker=1, dashboard_address=None, memory_limit=0) as cluster:
        return measure(folder, 1, cluster.scheduler_address)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--ranks", type=int, default=1024)
    parser.add_argument("--workers", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--events", type=int, default=20_000, help="of each longer rank (default: %(default)s)")
    parser.add_argument("--client", help=argparse.SUPPRESS)
    parser.add_argument("--jobs", type=int, help=argparse.SUPPRESS)
    parser.add_argument("--scheduler", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.client:
        client(options.client, options.jobs, options.scheduler)
        return
    print_numbers_of_ranks(options.ranks, options.workers)
    print()
    print_longer_ranks(max(options.ranks // 8, 8), options.events)


def print_numbers_of_ranks(ranks: int, workers: list[int]) -> None:
    """The table of engines, and numbers of workers and ranks."""
    print(
        "| ranks | engine | workers | wall, s | ranks/s | CPU, s "
        "| client, MB (begun with) | worker, MB | report, MB | late |"
    )
    print("|--:|---|--:|--:|--:|--:|--:|--:|--:|--:|")
    with ExitStack() as stack:
        folders = {}
        for number in sorted({max(ranks // 16, 8), max(ranks // 4, 8), ranks}):
            folders[number] = Path(stack.enter_context(tempfile.TemporaryDirectory()))
            write_ranks(folders[number], number)
        fewer = [(folder, "local", max(workers)) for number, folder in folders.items() if number < ranks]
        whole = [(folders[ranks], engine, n) for engine in ("local", "dask") for n in workers]
        for folder, engine, jobs in (*fewer, *whole):
            print_row(engine, jobs, measure_on_dask(folder, jobs) if engine == "dask" else measure(folder, jobs))


def print_row(engine: str, workers: int, figures: dict[str, Any]) -> None:
    worker = "–" if figures["worker_mb"] is None else f"{figures['worker_mb']:.0f}"
    cells = [
        figures["ranks"], engine, workers, f"{figures['wall']:.1f}", f"{figures['ranks'] / figures['wall']:.1f}",
        f"{figures['cpu']:.1f}", f"{figures['client_mb']:.0f} ({figures['start_mb']:.0f})", worker,
        f"{figures['report_mb']:.2f}", figures["late"],
    ]  # fmt: skip
    print(f"| {' | '.join(map(str, cells))} |", flush=True)


def print_longer_ranks(ranks: int, events: int) -> None:
    """The table of longer ranks."""
    print("| with | events | ranks | CPU, s a rank | CPU, s for 20,000 events |")
    print("|---|--:|--:|--:|--:|")
    for kind in LONGER:
        with tempfile.TemporaryDirectory() as folder:
            written = write_longer_ranks(Path(folder), ranks, kind, events)
            took = _seconds_of_command(folder) / ranks
        print(f"| {kind} | {written:,} | {ranks} | {took:.3f} | {took * 20_000 / written:.3f} |", flush=True)


def _seconds_of_command(folder: str) -> float:
    """What the command that analyses the folder takes of a processor."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    command = [sys.executable, "-m", "syncscope", "analyze", folder, "--jobs", "1", "--format", "json"]
    subprocess.run(command, stdout=subprocess.DEVNULL, check=True, cwd=ROOT)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


if __name__ == "__main__":
    main()
