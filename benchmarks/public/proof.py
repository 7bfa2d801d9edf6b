"""Public programs, unmodified, held against PyTorch's own warnings over the whole run.

``python -m benchmarks.public.proof --programs CLONES --data DATA`` with a GPU runs each program three times, each a
fresh process: on its own, under the oracle, and under ``syncscope profile`` (``--mode watch``: ``syncscope watch``).
One row a program says how many of the lines that PyTorch warned of are findings, how many with the exact count, what
phases the run had, and which steps were recorded. ``--timing`` compares wall times instead, one program at a time.
The table, the details of each row and the reports are written to ``-o DIR``.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import queue
import signal
import statistics
import subprocess
import time
import zipfile
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path

from benchmarks.public.comparing import Compared, compare, overhead_shares
from benchmarks.public.rows import HEAD, output_difference, row
from benchmarks.public.running import KEPT_CHARACTERS, Done, Mode, Place, end_all, run
from benchmarks.public.table import COMMITS, PROGRAMS, Program

Details = dict[str, object]
TIMING_HEAD = f"{'program':26} {'bare s':>7} {'ours s':>7} {'more':>6} {'ratio':>6}  own measure"


def kept(done: Done) -> Details:
    return {
        "status": done.status, "seconds": round(done.seconds, 2),
        "stdout": done.stdout[-KEPT_CHARACTERS:], "stderr": done.stderr[-KEPT_CHARACTERS:],
    }  # fmt: skip


def prove(program: Program, mode: Mode, place: Place, gpus: queue.Queue[int], last: float) -> tuple[str, Details]:
    """The row of a program, and what is behind it. It is not begun after ``last``, a time of the monotonic clock."""
    gpu = gpus.get()
    try:
        if time.monotonic() > last:
            return f"{program.name:26} not run", {"program": program.name}
        only = gpu if program.gpus == 1 else None
        bare, oracle, ours = (run(program, one, place, only) for one in ("bare", "oracle", mode))
    except (OSError, subprocess.TimeoutExpired) as error:  # its clone, its data or its first command
        return f"{program.name:26} could not be started: {error}", {"program": program.name, "error": str(error)}
    finally:
        gpus.put(gpu)
    details: Details = {"program": program.name, "results": ours.results}
    details["runs"] = {done.mode: kept(done) for done in (bare, oracle, ours)}
    details["stdout"] = {"oracle": output_difference(bare, oracle), "ours": output_difference(bare, ours)}
    compared: Compared | str
    try:
        compared = compare(oracle.results, ours.results)
        details["compared"] = compared.as_json()
    except Exception as error:
        compared = details["error"] = f"{type(error).__name__}: {error}"
    return row(program.name, bare, oracle, ours, compared), details


def time_both(program: Program, mode: Mode, place: Place, repeats: int) -> tuple[str, Details]:
    """Wall times on its own and under ``mode``, one after the other, ``repeats`` times."""
    only = 0 if program.gpus == 1 else None
    pairs = [(run(program, "bare", place, only), run(program, mode, place, only)) for _ in range(repeats)]
    times = [[round(done.seconds, 2) for done in runs] for runs in zip(*pairs, strict=True)]
    bare, ours = (statistics.median(some) for some in times)
    shares = overhead_shares(pairs[-1][1].results)
    said = f"{program.name:26} {bare:7.2f} {ours:7.2f} {ours - bare:+6.2f} {ours / bare:6.3f}  {shares}"
    return said, {"program": program.name, "bare": times[0], mode: times[1], "overhead_share": shares}


class Output:
    """``table.txt``, ``details.jsonl`` and ``reports.zip`` in a folder, whole after every row."""

    def __init__(self, folder: Path, head: str) -> None:
        self.folder = folder
        folder.mkdir(parents=True, exist_ok=True)
        for name in ("table.txt", "details.jsonl", "reports.zip"):
            (folder / name).unlink(missing_ok=True)
        self.say(head)

    def say(self, line: str) -> None:
        print(line, flush=True)
        with open(self.folder / "table.txt", "a") as table:
            table.write(line + "\n")

    def add(self, line: str, details: Details) -> None:
        self.say(line)
        with open(self.folder / "details.jsonl", "a") as lines:
            lines.write(json.dumps(details, default=str) + "\n")
        report = Path(str(details.get("results", ""))) / "report.json"
        if report.is_file():
            with zipfile.ZipFile(self.folder / "reports.zip", "a", zipfile.ZIP_DEFLATED) as reports:
                reports.write(report, f"{details['program']}.json")


def chosen(names: Sequence[str], gpus: int) -> list[Program]:
    """Those that are named, else those for exactly so many GPUs. Raises ``SystemExit`` for an unknown name."""
    known = {program.name: program for program in PROGRAMS}
    if unknown := [name for name in names if name not in known]:
        raise SystemExit(f"unknown: {', '.join(unknown)}; known: {', '.join(known)}")
    return [known[name] for name in names] or [program for program in PROGRAMS if program.gpus == gpus]


def parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*")
    parser.add_argument("--programs", type=Path, required=True, help="the folder with the clones")
    parser.add_argument("--data", type=Path, required=True, help="the folder that data.py filled")
    parser.add_argument("--work", type=Path, default=Path("/tmp/public"), help="for copies of the clones")
    parser.add_argument("-o", "--output", type=Path, default=Path("public-results"))
    parser.add_argument("--tree", type=Path, default=Path.cwd(), help="the folder that syncscope is imported from")
    parser.add_argument("--mode", choices=("profile", "watch"), default="profile")
    parser.add_argument("--option", action="append", default=[], help="a further option of syncscope: --option=--stop")
    parser.add_argument("--gpus", type=int, default=1, help="1: the programs for one GPU; 2: those for two")
    parser.add_argument("--devices", type=int, default=1, help="GPUs to spread the programs for one GPU over")
    parser.add_argument("--jobs", type=int, default=4, help="programs at the same time; with --timing always one")
    parser.add_argument("--timing", action="store_true")
    parser.add_argument("--repeats", type=int, default=3, help="with --timing")
    parser.add_argument("--begin-within", type=float, default=float("inf"), metavar="S", help="begin no program later")
    parser.add_argument("--list", action="store_true", help="only list the programs")
    return parser.parse_args(arguments)


def list_programs(programs: Sequence[Program]) -> None:
    for program in programs:
        print(f"{program.name}: {program.kind}\n    {program.repository} @ {COMMITS[program.repository][:12]}")
        print(f"    {program.folder}$ python {program.launcher} {program.command}".replace("  ", " "))


def end_with_programs(number: int, frame: object) -> None:
    end_all()
    os._exit(128 + number)


def main(arguments: Sequence[str] | None = None) -> None:
    options = parse(arguments)
    programs = chosen(options.names, options.gpus)
    if options.list:
        list_programs(programs)
        return
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, end_with_programs)
    folders = [path.resolve() for path in (options.programs, options.data, options.work, options.tree)]
    place = Place(*folders, options=tuple(options.option))
    if options.timing:
        output = Output(options.output, TIMING_HEAD)
        for program in programs:
            output.add(*time_both(program, options.mode, place, options.repeats))
        return
    output = Output(options.output, HEAD)
    gpus: queue.Queue[int] = queue.Queue()
    for number in itertools.islice(itertools.cycle(range(options.devices)), options.jobs):
        gpus.put(number)
    last = time.monotonic() + options.begin_within
    with ThreadPoolExecutor(options.jobs) as pool:
        rows = [pool.submit(prove, program, options.mode, place, gpus, last) for program in programs]
        for future in as_completed(rows):
            output.add(*future.result())


if __name__ == "__main__":
    main()
