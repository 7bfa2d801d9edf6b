"""HTA fed by us beside HTA with its own parser: ``python -m benchmarks.hta [--mb 200] [--steps 5] [--runs 1]``.

A recorded trace is repeated to the size. Each side is a process of its own that reads the file, with its parser or with
ours and ``to_hta``, and runs the analyses that ``syncscope hta`` prints: wall and CPU seconds and the largest RSS, its
children's added. Needs HTA (``pip install 'syncscope[hta]'``).
"""

from __future__ import annotations

import argparse
import contextlib
import io
import json
import logging
import multiprocessing
import os
import resource
import tempfile
import time
import warnings
from pathlib import Path
from typing import Any

from fixtures import repeat

PHASES = ("read", "temporal", "idle", "overlap", "queue", "critical path")


def analysis(way: str, path: str) -> Any:
    """The ``TraceAnalysis`` of a file; the last step kept, so that both ways have as much to do as there is."""
    if way == "own":
        from hta.trace_analysis import TraceAnalysis

        return TraceAnalysis(trace_files={0: path}, trace_dir="", include_last_profiler_step=True)
    import syncscope

    return syncscope.to_hta({0: syncscope.load(path)}, include_last_profiler_step=True)


def run(way: str, path: str) -> dict[str, float]:
    """Seconds of each phase, and under ``cpu`` and ``mb`` what all of them took."""
    logging.disable(logging.CRITICAL)
    warnings.simplefilter("ignore")
    spent = {}

    def timed(name: str, work: Any) -> Any:
        begin = time.perf_counter()
        try:
            with contextlib.redirect_stdout(io.StringIO()):
                return work()
        except Exception as error:
            spent["not run: " + name] = type(error).__name__
        finally:
            spent[name] = time.perf_counter() - begin

    loaded = timed("read", lambda: analysis(way, path))
    timed("temporal", lambda: loaded.get_temporal_breakdown(visualize=False))
    timed("idle", lambda: loaded.get_idle_time_breakdown(visualize=False))
    timed("overlap", lambda: loaded.get_comm_comp_overlap(visualize=False))
    timed("queue", lambda: loaded.get_queue_length_summary())
    timed("critical path", lambda: loaded.critical_path_analysis(0, "ProfilerStep", 1)[0].summary())
    usage = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    spent["cpu"] = sum(one.ru_utime + one.ru_stime for one in usage)
    spent["mb"] = sum(one.ru_maxrss for one in usage) / 1024
    return spent


def child(way: str, path: str, out: str) -> None:
    Path(out).write_text(json.dumps(run(way, path)), encoding="utf-8")


def apart(way: str, path: Path, folder: Path) -> dict[str, float]:
    """``run`` in a fresh process."""
    out = folder / f"{way}.json"
    process = multiprocessing.get_context("spawn").Process(target=child, args=(way, str(path), str(out)))
    process.start()
    process.join()
    if process.exitcode:
        raise SystemExit(f"{way}: ended with {process.exitcode}")
    seconds: dict[str, float] = json.loads(out.read_text(encoding="utf-8"))
    return seconds


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--mb", type=float, default=200)
    parser.add_argument("--steps", type=int, default=5)
    parser.add_argument("--runs", type=int, default=1, help="the best of so many counts")
    parser.add_argument("--trace", type=Path, default=repeat.BASE, help="the recorded trace to repeat")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "trace.json"
        events = repeat.write(path, base=given.trace, mb=given.mb, steps=given.steps)
        print(
            f"{given.trace.name} repeated: {path.stat().st_size / 1e6:.0f} MB, {events:,} events, {given.steps} steps"
        )
        print(f"{os.cpu_count()} cores; seconds, best of {given.runs}")
        best: dict[str, dict[str, float]] = {}
        for _ in range(given.runs):
            for way in ("own", "fed"):
                seconds = apart(way, path, Path(folder))
                best[way] = min(best.get(way, seconds), seconds, key=lambda one: sum(one[name] for name in PHASES))
    show(best["own"], best["fed"])


def show(own: dict[str, float], fed: dict[str, float]) -> None:
    print(f"{'':>16}{'own parser':>12}{'fed by us':>12}{'ratio':>9}")
    rows = [(name, own[name], fed[name]) for name in PHASES]
    rows.append(("all", *(sum(one[name] for name in PHASES) for one in (own, fed))))
    rows += [("CPU", own["cpu"], fed["cpu"]), ("peak MB", own["mb"], fed["mb"])]
    for name, theirs, ours in rows:
        print(f"{name:>16}{theirs:>12,.2f}{ours:>12,.2f}{theirs / ours:>8.1f}×")
    for way, one in (("own", own), ("fed", fed)):
        for name, why in one.items():
            if name.startswith("not run"):
                print(f"{way} {name}: {why}")


if __name__ == "__main__":
    main()
