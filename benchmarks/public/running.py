"""Run one public program once: on its own, under the oracle, or under syncscope."""

from __future__ import annotations

import os
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from benchmarks.public.table import Program

HERE = Path(__file__).parent
Mode = Literal["bare", "oracle", "profile", "watch"]
GRACE_S = 15
"""For a program that is interrupted to end by itself."""
KEPT_CHARACTERS = 4000
ALIVE: set[int] = set()
"""The process groups of the programs that run now."""


@dataclass(frozen=True)
class Place:
    """The folders of one session of measurements."""

    programs: Path
    data: Path
    work: Path
    tree: Path
    """Where syncscope is."""
    options: tuple[str, ...] = ()
    """Further options of syncscope."""
    clock: bool = False
    """Whether the steps of the programs' optimizers are timed."""


@dataclass(frozen=True)
class Done:
    mode: Mode
    status: int | str
    """``timeout`` where it was ended."""
    seconds: float
    stdout: str
    stderr: str
    copy: Path
    """The copy of the clone that it ran in."""
    results: Path
    """What the oracle or syncscope wrote."""


def prepare(program: Program, mode: Mode, place: Place) -> Path:
    """A fresh copy of the clone, with its data linked into it."""
    top = place.work / f"{program.name}.{mode}"
    shutil.rmtree(top, ignore_errors=True)
    copy = top / program.clone
    shutil.copytree(place.programs / program.clone, copy, ignore=shutil.ignore_patterns(".git"))
    for link, target in program.data.items():
        connect(Path(os.path.normpath(copy / link)), place.data / target)
    return copy


def connect(link: Path, target: Path) -> None:
    """Link the data, in the place of files that the clone has; into a folder that it has, each file of it."""
    if link.is_dir():
        for one in target.iterdir():
            connect(link / one.name, one)
    else:
        link.parent.mkdir(parents=True, exist_ok=True)
        link.unlink(missing_ok=True)
        link.symlink_to(target)


def free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


def command(program: Program, mode: Mode, place: Place, results: Path, line: str) -> list[str]:
    """``line`` in the given mode: what the program's command and launcher become."""
    known = {"bin": str(Path(sys.executable).parent), "data": str(place.data), "port": str(free_port())}
    script = shlex.split(line.format(**known))
    launcher = shlex.split(program.launcher.format(**known))
    under = []
    if mode in ("profile", "watch"):
        output = results / "report.json" if mode == "watch" else results
        under = ["-m", "syncscope", mode, "-o", str(output), *place.options]
    outer, inner = (launcher, under) if program.inside else (under, launcher)
    return [sys.executable, *outer, *inner, *script]


def environment(
    program: Program, mode: Mode, place: Place, copy: Path, results: Path, gpu: int | None
) -> Mapping[str, str]:
    own = {name: value.format(data=place.data) for name, value in program.environment.items()}
    path = [str(copy / own["PYTHONPATH"])] if "PYTHONPATH" in own else []
    path.append(str(HERE / "standins"))
    added = {
        "HF_HOME": str(place.data / "hub_home"),
        "HF_DATASETS_CACHE": str(copy.parent / "datasets_cache"),
        "MASTER_ADDR": "127.0.0.1",
        "MPLBACKEND": "Agg",
        "NO_ALBUMENTATIONS_UPDATE": "1",
        "PYTHONHASHSEED": "0",
        "PYTHONUNBUFFERED": "1",
        "TORCH_HOME": str(place.data / "torch_home"),
        "TORCHINDUCTOR_CACHE_DIR": str(copy.parent / "torchinductor"),
        "WANDB_MODE": "disabled",
        "YOLO_CONFIG_DIR": str(copy.parent),
        **own,
    }
    if mode == "oracle":
        path.insert(0, str(HERE / "oracle"))
        added["ORACLE"] = str(results)
    if place.clock:
        path.insert(0, str(HERE / "clock"))
        added["CLOCK"] = str(copy.parent / "clock")
    if mode in ("profile", "watch"):
        path.append(str(place.tree))
    if gpu is not None:
        added["CUDA_VISIBLE_DEVICES"] = str(gpu)
    if inherited := os.environ.get("PYTHONPATH"):
        path.append(inherited)
    return {**os.environ, **added, "PYTHONPATH": os.pathsep.join(path)}


def end(process: subprocess.Popen[bytes]) -> None:
    """Ask a program and its children to end, then make them."""
    for number in (signal.SIGINT, signal.SIGKILL):
        try:
            os.killpg(process.pid, number)
            process.wait(GRACE_S)
        except (ProcessLookupError, subprocess.TimeoutExpired):
            continue


def end_all() -> None:
    """End at once what still runs; each program has a session of its own, which would outlive this process."""
    for group in tuple(ALIVE):
        with suppress(ProcessLookupError):
            os.killpg(group, signal.SIGKILL)


def tail(file: Path) -> str:
    return file.read_bytes()[-200_000:].decode(errors="replace")


def run(program: Program, mode: Mode, place: Place, gpu: int | None = None) -> Done:
    """One run in a fresh process. ``gpu`` is the number of the only one that it sees."""
    copy = prepare(program, mode, place)
    results = copy.parent / "results"
    results.mkdir()
    folder = copy / program.folder
    variables = environment(program, mode, place, copy, results, gpu)
    if program.before:
        plain = environment(program, "bare", place, copy, results, gpu)
        first = command(program, "bare", place, results, program.before)
        with open(copy.parent / "before", "wb") as log:
            subprocess.run(first, cwd=folder, env=plain, stdout=log, stderr=log, timeout=program.seconds, check=False)
    whole = command(program, mode, place, results, program.command)
    with open(copy.parent / "stdout", "wb") as out, open(copy.parent / "stderr", "wb") as err:
        begin = time.monotonic()
        process = subprocess.Popen(
            whole, cwd=folder, env=variables, stdin=subprocess.DEVNULL, stdout=out, stderr=err, start_new_session=True
        )
        ALIVE.add(process.pid)
        status: int | str
        try:
            status = process.wait(program.seconds)
        except subprocess.TimeoutExpired:
            status = "timeout"
            end(process)
        ALIVE.discard(process.pid)
        seconds = time.monotonic() - begin
    return Done(mode, status, seconds, tail(copy.parent / "stdout"), tail(copy.parent / "stderr"), copy, results)
