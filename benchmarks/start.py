"""How long commands take that have little to do: ``python -m benchmarks.start``.

Each runs ``--times`` times, in turn with the others and with a Python that does nothing, so that a machine that others
use slows all alike. The trace has some 13 KB. Times are medians; of the processor's, the least, too. Each command runs
once before, and keeps the bytecode of what it imports, as an installed package has it, whatever
``PYTHONDONTWRITEBYTECODE`` says; ``--no-bytecode`` leaves that variable as it is. The command is the one that is
installed beside Python.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from resource import RUSAGE_CHILDREN, getrusage
from typing import NamedTuple

TRACE = Path(__file__).parents[1] / "fixtures" / "traces" / "copies_both_ways" / "trace.json.gz"
SYNCSCOPE = (str(Path(sys.executable).with_name("syncscope")),)


class Run(NamedTuple):
    """What one run of a command took, in seconds."""

    wall: float
    cpu: float
    """Of the user and of the system, all processes together."""


def commands(trace: Path, folder: Path) -> dict[str, Sequence[str]]:
    """The commands by what they are called in the table."""
    return {
        "python -c pass": (sys.executable, "-c", "pass"),
        "import numpy": (sys.executable, "-c", "import numpy"),
        "syncscope --help": (*SYNCSCOPE, "--help"),
        "syncscope rules": (*SYNCSCOPE, "rules"),
        "syncscope analyze": (*SYNCSCOPE, "analyze", str(trace)),
        "syncscope analyze --format json": (*SYNCSCOPE, "analyze", str(trace), "--format", "json"),
        "syncscope check": (*SYNCSCOPE, "check", str(trace)),
        "syncscope analyze -o report.html": (*SYNCSCOPE, "analyze", str(trace), "-o", str(folder / "report.html")),
    }


def keep_bytecode(folder: Path) -> dict[str, str]:
    """An environment in which Python keeps compiled modules in a folder."""
    kept = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    return {**kept, "PYTHONPYCACHEPREFIX": str(folder)}


def run(command: Sequence[str], env: dict[str, str]) -> Run:
    """Run a command to its end, whatever its status."""
    before, begin = getrusage(RUSAGE_CHILDREN), time.perf_counter()
    subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=env, check=False)
    wall, after = time.perf_counter() - begin, getrusage(RUSAGE_CHILDREN)
    return Run(wall, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)


def table(runs: dict[str, list[Run]]) -> str:
    """As markdown."""
    lines = ["| command | time, s | quarter to three quarters, s | CPU, s | least CPU, s |", "|---|---|---|---|---|"]
    for name, took in runs.items():
        walls, cpus = sorted(one.wall for one in took), [one.cpu for one in took]
        quarter, three = walls[len(walls) // 4], walls[-1 - len(walls) // 4]
        middle, cpu = statistics.median(walls), statistics.median(cpus)
        lines.append(f"| `{name}` | {middle:.2f} | {quarter:.2f}–{three:.2f} | {cpu:.2f} | {min(cpus):.2f} |")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--times", type=int, default=20)
    parser.add_argument("--trace", type=Path, default=TRACE)
    parser.add_argument("--no-bytecode", action="store_true", help="do not keep compiled modules for the runs")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        chosen = commands(args.trace, Path(folder))
        runs: dict[str, list[Run]] = {name: [] for name in chosen}
        env = dict(os.environ) if args.no_bytecode else keep_bytecode(Path(folder) / "bytecode")
        for command in chosen.values():
            run(command, env)
        for _ in range(args.times):
            for name, command in chosen.items():
                runs[name].append(run(command, env))
    print(table(runs))


if __name__ == "__main__":
    main()
