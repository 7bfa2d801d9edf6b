"""How fast many ranks are read, by number of workers, and what the client needs: ``python -m benchmarks.ranks``.

Writes ``--ranks`` files (``fixtures/ranks.py``). For each engine and number of workers, and for fewer ranks, a new
process analyses the folder. Peak memory is resident memory: the client's comes from the operating system, the largest
worker's is sampled five times a second.
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

from fixtures.ranks import write_ranks

ROOT = Path(__file__).parents[1]


def client(folder: str, jobs: int, scheduler: str | None) -> None:
    """Analyse the folder and print what it took, as JSON."""
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


def measured(folder: Path, jobs: int, scheduler: str | None = None) -> dict[str, Any]:
    """The figures of a client of its own, and of its workers: below it, or of the cluster below this process."""
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
        found: dict[str, Any] = json.loads(running.stdout.read().splitlines()[-1])
    return found | {"cpu": sum(cpu.values()), "worker_mb": largest / 1e6 if largest else None}


def _seconds(process: psutil.Process) -> float:
    times = process.cpu_times()
    return float(times.user + times.system)


def on_dask(folder: Path, workers: int) -> dict[str, Any]:
    """With so many dask workers of one thread, each a process of this machine."""
    from distributed import LocalCluster

    with LocalCluster(n_workers=workers, threads_per_worker=1, dashboard_address=None, memory_limit=0) as cluster:
        return measured(folder, 1, cluster.scheduler_address)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--ranks", type=int, default=1024)
    parser.add_argument("--workers", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--client", help=argparse.SUPPRESS)
    parser.add_argument("--jobs", type=int, help=argparse.SUPPRESS)
    parser.add_argument("--scheduler", help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.client:
        client(asked.client, asked.jobs, asked.scheduler)
        return
    print(
        "| ranks | engine | workers | wall, s | ranks/s | CPU, s "
        "| client, MB (begun with) | worker, MB | report, MB | late |"
    )
    print("|--:|---|--:|--:|--:|--:|--:|--:|--:|--:|")
    with ExitStack() as stack:
        folders = {}
        for number in sorted({max(asked.ranks // 16, 8), max(asked.ranks // 4, 8), asked.ranks}):
            folders[number] = Path(stack.enter_context(tempfile.TemporaryDirectory()))
            write_ranks(folders[number], number)
        fewer = [(folder, "local", max(asked.workers)) for number, folder in folders.items() if number < asked.ranks]
        whole = [(folders[asked.ranks], engine, n) for engine in ("local", "dask") for n in asked.workers]
        for folder, engine, workers in (*fewer, *whole):
            row(engine, workers, on_dask(folder, workers) if engine == "dask" else measured(folder, workers))


def row(engine: str, workers: int, found: dict[str, Any]) -> None:
    worker = "–" if found["worker_mb"] is None else f"{found['worker_mb']:.0f}"
    cells = [
        found["ranks"], engine, workers, f"{found['wall']:.1f}", f"{found['ranks'] / found['wall']:.1f}",
        f"{found['cpu']:.1f}", f"{found['client_mb']:.0f} ({found['start_mb']:.0f})", worker,
        f"{found['report_mb']:.2f}", found["late"],
    ]  # fmt: skip
    print(f"| {' | '.join(map(str, cells))} |", flush=True)


if __name__ == "__main__":
    main()
