"""What syncscope costs the loops of public programs: alone, under ``watch`` and under ``profile``, in turn.

``python -m benchmarks.public.timing --programs CLONES --data DATA NAME …`` with a GPU runs one process at a time, in
rounds: each program in each of the three modes, in an order that turns from round to round. A clock outside syncscope
(``clock/sitecustomize.py``) takes the time from the first step of an optimizer to the last, which leaves out the start
and the report, and the median time of a step, which leaves out what is recorded as well. Each is held against the run
alone of the same round. ``--read FILE …`` adds up what several sessions left.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import statistics
import time
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from benchmarks.public.proof import chosen
from benchmarks.public.running import Mode, Place, run
from benchmarks.public.table import Program

MODES: tuple[Mode, ...] = ("bare", "watch", "profile")
LONGER = {
    "nanogpt": "--max_iters=1200 --eval_interval=400",
    "cleanrl-ppo": "--total-timesteps 30000",
    "cleanrl-dqn": "--total-timesteps 12000",
    "diffusers": "--num_epochs 4",
    "gin": "--epochs 30",
    "imagenet": "--epochs 6",
    "lightning-hydra": "trainer.max_epochs=3",
    "stargan": "--num_iters 300",
}
"""What makes programs run for about ten seconds of steps."""
FIGURES = ("loop_s", "step_s", "seconds")
Measured = dict[str, Any]
"""One run: its program, round and mode, its exit status, its wall time, and what the clock said."""


def longer(program: Program) -> Program:
    """The last of two equal options counts."""
    command = f"{program.command} {LONGER.get(program.name, '')}".strip()
    return dataclasses.replace(program, command=command, seconds=120)


def clocked(folder: Path) -> dict[str, float]:
    """What the process said whose optimizers made the most steps."""
    said = [json.loads(file.read_text()) for file in folder.glob("*.json")]
    return max(said, key=lambda one: one["steps"], default={})


def measure(program: Program, mode: Mode, number: int, place: Place) -> Measured:
    done = run(longer(program), mode, place, gpu=0 if program.gpus == 1 else None)
    named = {"program": program.name, "round": number, "mode": mode, "status": done.status}
    return {**named, "seconds": done.seconds, **clocked(done.copy.parent / "clock")}


def ratios(measured: Sequence[Measured], program: str, mode: Mode, figure: str) -> list[float]:
    """The figure over that of the run alone of the same round, of the runs that ended well."""
    ended = {(one["round"], one["mode"]): one[figure] for one in measured
             if one["program"] == program and one["status"] == 0 and one.get(figure)}  # fmt: skip
    rounds = sorted({number for number, _ in ended})
    both = [number for number in rounds if (number, mode) in ended and (number, "bare") in ended]
    return [ended[number, mode] / ended[number, "bare"] for number in both]


def row(measured: Sequence[Measured], program: str) -> str:
    alone = [one for one in measured if one["program"] == program and one["mode"] == "bare" and one.get("loop_s")]
    if not alone:
        return f"{program:18} no steps by an optimizer"
    cells = [f"{program:18} {statistics.median(one['loop_s'] for one in alone):7.2f} {alone[-1]['steps']:6}"]
    for mode in MODES[1:]:
        for figure in FIGURES:
            of = ratios(measured, program, mode, figure)
            cells.append(f"{statistics.median(of):.3f} ({min(of):.3f}–{max(of):.3f})" if of else f"{'-':21}")
    return "  ".join(cells) + f"  {len(alone)} rounds"


def table(measured: Sequence[Measured]) -> str:
    heads = [f"{mode} {figure.removesuffix('_s')}".ljust(21) for mode in MODES[1:] for figure in FIGURES]
    names = dict.fromkeys(one["program"] for one in measured)
    return "\n".join([f"{'program':18} {'loop s':>7} {'steps':>6}  {'  '.join(heads)}",
                      *(row(measured, name) for name in names)])  # fmt: skip


def sessions(files: Iterable[Path]) -> list[Measured]:
    """Their runs, with the rounds of each session apart."""
    return [
        {**json.loads(line), "round": f"{number}.{json.loads(line)['round']}"}
        for number, file in enumerate(files)
        for line in file.read_text().splitlines()
    ]


def measure_all(programs: Sequence[Program], place: Place, rounds: int, within: float, output: Path) -> list[Measured]:
    """Round by round, until all are done or the next program may end too late."""
    end = time.monotonic() + within
    measured: list[Measured] = []
    took: dict[str, float] = {}
    output.parent.mkdir(parents=True, exist_ok=True)
    for number in range(rounds):
        for program in programs:
            begin = time.monotonic()
            if begin + 1.1 * took.get(program.name, 0) > end:
                continue
            turned = MODES[number % len(MODES) :] + MODES[: number % len(MODES)]
            runs = [measure(program, mode, number, place) for mode in turned]
            took[program.name] = time.monotonic() - begin
            measured += runs
            with open(output, "a") as lines:
                lines.writelines(json.dumps(one) + "\n" for one in runs)
            print(row(measured, program.name), flush=True)
    return measured


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", help=f"else: {' '.join(LONGER)}")
    parser.add_argument("--programs", type=Path, help="the folder with the clones")
    parser.add_argument("--data", type=Path, help="the folder that data.py filled")
    parser.add_argument("--work", type=Path, default=Path("/tmp/public"), help="for copies of the clones")
    parser.add_argument("-o", "--output", type=Path, default=Path("public-timing.jsonl"))
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--within", type=float, default=float("inf"), metavar="S", help="begin nothing that ends later")
    parser.add_argument("--read", type=Path, nargs="+", help="only show what these files tell")
    options = parser.parse_args(arguments)
    if options.read:
        print(table(sessions(options.read)))
        return
    if not options.programs or not options.data:
        parser.error("--programs and --data are needed")
    programs_at, data, work, tree = (path.resolve() for path in (options.programs, options.data, options.work, Path()))
    place = Place(programs_at, data, work, tree, clock=True)
    programs = chosen(options.names or list(LONGER), 1)
    print(table(measure_all(programs, place, options.rounds, options.within, options.output)))


if __name__ == "__main__":
    main()
