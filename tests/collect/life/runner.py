"""Runs one program alone and once more under ``syncscope profile``, and says what can be told apart from outside.

Ours on stderr is one block, written when the program is over: from the first line that begins with ``syncscope: `` to
the last one. Nothing of ours goes to stdout.
"""

from __future__ import annotations

import hashlib
import os
import re
import resource
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

from tests.interrupts import heed_interrupts

HERE = Path(__file__).parent
ROOT = HERE.parents[2]
SHORT = ("--warmup", "2", "--bare", "3", "--steps", "2", "--attribution", "2")
OURS = re.compile(r"^syncscope: .*(?:\n(?:.*\n)*syncscope: .*)?\n", re.MULTILINE)
DURATION = 120
"""Seconds after which a program counts as hanging."""


@dataclass(frozen=True)
class Outcome:
    """How a program ended, with its folder's name, numbers of processes and addresses taken out of what it printed."""

    stdout: str
    stderr: str
    status: int
    files: tuple[tuple[str, str], ...]
    """Each with a digest of what is in it."""


@dataclass(frozen=True)
class Place:
    """Where programs run: with the PyTorch that is installed, or with one that stands in for it."""

    standin: bool

    def environment(self) -> dict[str, str]:
        paths = [*([str(HERE / "standin")] if self.standin else []), str(ROOT)]
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("PYTEST", "COV"))}
        fixed = {"PYTHONHASHSEED": "0", "NO_COLOR": "1", "COLUMNS": "120", "TORCH_AUTOGRAD_SHUTDOWN_WAIT_LIMIT": "0"}
        return {**kept, **fixed, "PYTHONPATH": os.pathsep.join(paths)}  # else a fork waits 10 s for threads it lacks

    def command(self, python: tuple[str, ...] = ()) -> list[str]:
        ours = [str(HERE / "standin" / "command.py")] if self.standin else ["-m", "syncscope"]
        return [sys.executable, *python, *ours, "profile", *SHORT, "-o", "out"]


def prepare(folder: Path) -> Path:
    """A copy of the programs, for one run."""
    return Path(shutil.copytree(HERE / "programs", folder, ignore=shutil.ignore_patterns("__pycache__")))


def start(
    folder: Path, command: list[str], place: Place, before: Callable[[], None] | None = None
) -> subprocess.Popen[str]:
    """Start ``command`` in ``folder``, as the leader of its own process group, which heeds Ctrl-C."""

    def prepared() -> None:
        heed_interrupts()
        if before is not None:
            before()

    return subprocess.Popen(
        command, cwd=folder, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        env=place.environment(), start_new_session=True, preexec_fn=prepared,
    )  # fmt: skip


def finish(process: subprocess.Popen[str], folder: Path) -> Outcome:
    """Wait for ``process``. Raises ``subprocess.TimeoutExpired`` for one that hangs, and ends it."""
    try:
        stdout, stderr = process.communicate(timeout=DURATION)
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.communicate()
    made = {str(path.relative_to(folder)): path for path in folder.rglob("*") if path.is_file()}
    files = sorted(
        (name, hashlib.sha256(path.read_bytes()).hexdigest())
        for name, path in made.items()
        if not name.startswith("out/") and "__pycache__" not in name
    )
    return Outcome(nameless(stdout, folder), nameless(stderr, folder), process.returncode, tuple(files))


def nameless(text: str, folder: Path) -> str:
    for name in {str(folder), os.path.realpath(folder)}:
        text = text.replace(name, "<here>")
    return re.sub(r"0x[0-9a-f]+", "0x", re.sub(r"\(pid=\d+\)", "(pid=)", text))


def alone(folder: Path, place: Place, *program: str, python: tuple[str, ...] = ()) -> Outcome:
    """The program as ``python`` runs it."""
    prepare(folder)
    return finish(start(folder, [sys.executable, *python, *program], place), folder)


def profiled(
    folder: Path, place: Place, *program: str, options: tuple[str, ...] = (), python: tuple[str, ...] = (),
    before: Callable[[], None] | None = None,
) -> Outcome:  # fmt: skip
    """The program as ``syncscope profile`` runs it, with our lines."""
    prepare(folder)
    return finish(start(folder, [*place.command(python), *options, *program], place, before), folder)


def run_in_pytest(folder: Path, place: Place, program: str, mark: str) -> Outcome:
    """The program inside a test of pytest's that has ``mark``, without the time that pytest took."""
    prepare(folder)
    (folder / "pytest.ini").write_text("[pytest]\n")
    (folder / "test_it.py").write_text(
        "import runpy\n"
        "from pytest import mark\n"
        f"pytestmark = [{mark}]\n"
        "def test_program():\n"
        f"    runpy.run_path({program!r}, run_name='__main__')\n"
    )
    command = [sys.executable, "-m", "pytest", "-s", "-q", "-p", "no:cacheprovider", "-p", "syncscope.pytest_plugin"]
    command.append("--tb=short")  # a long traceback shows arguments, so tensors of random numbers
    found = finish(start(folder, ["env", "PYTEST_DISABLE_PLUGIN_AUTOLOAD=1", *command, "test_it.py"], place), folder)
    files = tuple(file for file in found.files if file[0] != "test_it.py")
    return replace(found, stdout=re.sub(r" in \d[\d.:()s ]*", "", found.stdout), files=files)


def without_ours(outcome: Outcome) -> Outcome:
    return Outcome(outcome.stdout, OURS.sub("", outcome.stderr), outcome.status, outcome.files)


def interrupt_after(folder: Path, place: Place, seconds: float, number: signal.Signals, *program: str) -> Outcome:
    """The profiled program, which gets a signal ``seconds`` after it started."""
    prepare(folder)
    process = start(folder, [*place.command(), *program], place)
    time.sleep(seconds)
    if process.poll() is None:
        process.send_signal(number)
    return finish(process, folder)


def limit_files(most: int) -> Callable[[], None]:
    """Let a process write no file longer than ``most`` bytes: the disk is full, as far as it can tell."""

    def limit() -> None:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (most, most))

    return limit


def peak_of(folder: Path, place: Place, command: list[str]) -> tuple[Outcome, int]:
    """The outcome of ``command`` and the most host memory that it or a child of it held, in bytes."""
    prepare(folder)
    watch = (
        "import resource, subprocess, sys; status = subprocess.run(sys.argv[1:]).returncode; "
        "open('peak', 'w').write(str(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)); sys.exit(status)"
    )
    outcome = finish(start(folder, [sys.executable, "-c", watch, *command], place), folder)
    return outcome, int((folder / "peak").read_text()) * 1024
