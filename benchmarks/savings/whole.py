"""Time and record whole programs with and without their patches.

Each version runs in as many fresh processes as asked for. They start side by side and wait in their first steps; then
one after the other, the versions in turn, runs its steps alone. After that the unpatched program is recorded, alone
too, before the next program has its turns: when time is up, no more than one was timed and not recorded.
"""

from __future__ import annotations

import functools
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from benchmarks.public.running import Place, command, connect, end, environment
from benchmarks.savings.patched import Patched, apply
from benchmarks.savings.slim import keep
from syncscope import Report

TIMER = Path(__file__).parent / "timer"
START_S, TURN_S, RECORD_S = 90.0, 25.0, 75.0
"""Seconds that processes may take to get to their first steps, one for its turn, and a recording."""
TIMED_S = 4.0
"""Seconds after which a process has timed enough: processes differ by more than the stretches of one."""


@dataclass
class Timing:
    """The processes of one program, and what they measured."""

    one: Patched
    processes: dict[str, subprocess.Popen[bytes]] = field(default_factory=dict)
    """By name: ``before.0``, ``after.0``, ``before.1``, …"""
    folder: Path = Path()

    def ready(self) -> list[str]:
        return [name for name in self.processes if (self.folder / f"{name}.ready").exists()]

    def measured(self, version: str) -> dict[int, float]:
        """Milliseconds a backward of each process of a version that got to its end."""
        files = self.folder.glob(f"{version}.*.ms")
        return {int(file.name.split(".")[1]): float(file.read_text()) for file in files}


def copied(one: Patched, place: Place, version: str) -> Path:
    """A copy of the clone with its data, patched for ``after``; the folder to start in."""
    copy = place.work / f"{one.name}.{version}" / one.whole.clone
    shutil.rmtree(copy.parent, ignore_errors=True)
    shutil.copytree(prepared(one, place).parent, copy.parent, symlinks=True)
    if version == "after":
        apply(one.patch, copy)
    return copy


def prepared(one: Patched, place: Place) -> Path:
    """A copy of the clone with its data, in which has run what comes before the program: once, since the processes of a
    version share a copy and would write the same files at the same time."""
    program = one.whole
    copy = place.work / f"{one.name}.prepared" / program.clone
    if copy.exists():
        return copy
    shutil.copytree(place.programs / program.clone, copy, ignore=shutil.ignore_patterns(".git"))
    for link, target in program.data.items():
        connect(Path(os.path.normpath(copy / link)), place.data / target)
    variables = dict(environment(program, "bare", place, copy, copy.parent, None))
    for line in filter(None, (program.before, one.first)):
        with suppress(subprocess.TimeoutExpired):
            subprocess.run(
                command(program, "bare", place, copy.parent, line), cwd=copy / program.folder, env=variables,
                stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, timeout=START_S,
                check=False,
            )  # fmt: skip
    return copy


def start(one: Patched, place: Place, processes: int) -> Timing:
    """Start all processes of both versions."""
    program, timing = one.whole, Timing(one, folder=place.work / f"{one.name}.times")
    for old in (timing.folder, place.work / f"{one.name}.prepared"):
        shutil.rmtree(old, ignore_errors=True)
    timing.folder.mkdir(parents=True)
    copies = {version: copied(one, place, version) for version in ("before", "after")}
    for number in range(processes):
        for version, copy in copies.items():
            name = f"{version}.{number}"
            plan = {"folder": str(timing.folder), "name": name, "seconds": TIMED_S}
            plan |= {"gate": one.gate, "settle": one.settle, "timed": one.timed, "part": one.part}
            variables = dict(environment(program, "bare", place, copy, timing.folder, None))
            variables["PYTHONPATH"] = os.pathsep.join([str(TIMER), variables["PYTHONPATH"]])
            variables["SAVINGS_TIMER"] = json.dumps(plan)
            line = command(program, "bare", place, timing.folder, program.command)
            with (timing.folder / f"{name}.log").open("wb") as log:
                timing.processes[name] = subprocess.Popen(
                    line, cwd=copy / program.folder, env=variables, stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                    start_new_session=True,
                )  # fmt: skip
    return timing


def wait(timings: Sequence[Timing]) -> None:
    """Wait until every process waits for its turn or has ended."""
    until = time.monotonic() + START_S
    while time.monotonic() < until:
        waiting = {(id(timing), name) for timing in timings for name in timing.ready()}
        running = {(id(t), name) for t in timings for name, p in t.processes.items() if p.poll() is None}
        if running <= waiting:
            return
        time.sleep(0.1)


def take_turns(timing: Timing) -> None:
    """Let one process after the other run its steps."""
    for name in timing.ready():
        process = timing.processes[name]
        (timing.folder / f"{name}.go").touch()
        until = time.monotonic() + TURN_S
        while process.poll() is None and time.monotonic() < until:
            time.sleep(0.01)
        stop(process)
    for process in timing.processes.values():
        stop(process)


def stop(process: subprocess.Popen[bytes]) -> None:
    """End a process and its loader's workers, which may outlive it."""
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def figures(timing: Timing) -> dict[str, object]:
    """What was measured, in pairs of one process of each version."""
    before, after = timing.measured("before"), timing.measured("after")
    pairs = sorted(before.keys() & after.keys())
    return {
        "processes": len(pairs), "steps_a_block": timing.one.timed,
        "before_ms": [round(before[number], 5) for number in pairs],
        "after_ms": [round(after[number], 5) for number in pairs],
    }  # fmt: skip


def record(one: Patched, place: Place, target: Path) -> str:
    """Record the unpatched program and keep its training phase; one line about it."""
    program, copy = one.whole, copied(one, place, "recorded")
    results = copy.parent / "results"
    results.mkdir()
    line = command(program, "profile", place, results, program.command)
    variables = environment(program, "profile", place, copy, results, None)
    with (copy.parent / "log").open("wb") as log:
        process = subprocess.Popen(
            line, cwd=copy / program.folder, env=variables, stdin=subprocess.DEVNULL, stdout=log, stderr=log,
            start_new_session=True,
        )  # fmt: skip
        try:
            process.wait(RECORD_S)
        except subprocess.TimeoutExpired:
            end(process)
    report = results / "report.json"
    if not report.exists():
        return "not recorded: " + _tail(copy.parent / "log")
    traces = Report.from_json(report.read_bytes()).traces
    wanted = next((info for info in traces if info.in_training), traces[0] if traces else None)
    if wanted is None:
        return "no trace"
    keep(results / Path(wanted.path).name, target)
    return f"bare {wanted.steps.bare_ms or 0:.3f}, phase {wanted.phase}, {target.stat().st_size // 1024} KB"


def _tail(log: Path) -> str:
    return log.read_text(errors="replace").strip()[-400:]


def together(wanted: Sequence[Patched], at_once: int) -> Iterator[Sequence[Patched]]:
    """As many programs as start at the same time."""
    for begin in range(0, len(wanted), at_once):
        yield wanted[begin : begin + at_once]


def prove(wanted: Iterable[Patched], place: Place, out: Path, processes: int, at_once: int, deadline: float) -> None:
    """Time and record each program, until ``deadline`` on the monotonic clock."""
    place.work.mkdir(parents=True, exist_ok=True)
    for some in together(list(wanted), at_once):
        if time.monotonic() > deadline:
            return
        timings = [start(one, place, processes) for one in some]
        try:
            wait(timings)
            for timing in timings:
                take_turns(timing)
                print(_kept(timing, out), flush=True)
                one = timing.one
                if (out / one.pair.name / "trace.timings.json").exists() and time.monotonic() < deadline:
                    print(f"{one.pair.name:32} {record(one, place, out / one.pair.name / 'trace.json.gz')}", flush=True)
        finally:
            for timing in timings:
                for process in timing.processes.values():
                    stop(process)


def _kept(timing: Timing, out: Path) -> str:
    """Keep what a program's processes measured; one line about it."""
    name, found = timing.one.pair.name, figures(timing)
    if not found["processes"]:
        logs = sorted(timing.folder.glob("*.log"))
        return f"{name:32} not timed: " + (_tail(logs[0]) if logs else "")
    (out / name).mkdir(parents=True, exist_ok=True)
    (out / name / "trace.timings.json").write_text(json.dumps({**_machine(), **found}))
    return f"{name:32} before {found['before_ms']} after {found['after_ms']}"


@functools.cache
def _machine() -> dict[str, str]:
    asked = "import torch; print(torch.cuda.get_device_name() if torch.cuda.is_available() else 'none')"
    told = subprocess.run([sys.executable, "-c", asked], capture_output=True, text=True, check=False)
    return {"device": told.stdout.strip() or "none"}
