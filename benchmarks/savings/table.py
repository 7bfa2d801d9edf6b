"""Predicted against measured savings: ``python -m benchmarks.savings.table``, from the recordings, without a GPU.

Prints a table and the scores of each set of pairs, then those of all contacts and of all pairs, and draws
``savings.svg`` beside the recordings. The last score of each is that of the replay alone, told how long the step took
where it was timed.
"""

from __future__ import annotations

import argparse
import itertools
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from benchmarks.savings.scatter import draw
from benchmarks.savings.scores import (
    DRIFTED,
    GREAT,
    MODES,
    RECORDINGS,
    SETS,
    Row,
    Score,
    Summary,
    rows,
    score,
    summarise,
)  # fmt: skip

HEAD = (
    f"{'pair':26} {'mode':7} {'bound by':8} {'step':>7} {'measured':>8} {'95 % interval':>16} {'predicted':>9} "
    f"{'low – high':>16} {'off %':>6} {'blocked':>8} {'idle':>7}  rules"
)


def ms(value: float | None, width: int = 8) -> str:
    return f"{'–':>{width}}" if value is None else f"{value:{width}.3f}"


def between(low: float | None, high: float | None) -> str:
    return f"{ms(low, 0)} – {ms(high, 0)}".rjust(16)


def line(row: Row) -> str:
    measured, predicted = row.measured, row.predicted
    off = "–" if row.off is None else f"{100 * row.off:.1f}"
    marks = f"  not scored: {row.unscored}" if row.unscored else ""
    marks += "  not near" if predicted.saving is not None and not row.near else ""
    marks += "  outside the range" if predicted.low is not None and not row.inside else ""
    marks += "  over twice" if row.overpromised else ""
    marks += "  not held" if row.pair.kind == "transform" and not row.held else ""
    marks += f"  recorded while a step took {100 * row.drift:+.0f} %" if abs(row.drift) > DRIFTED else ""
    marks += f"  {predicted.why}" if predicted.why else ""
    return (
        f"{row.pair.name:26} {row.mode:7} {row.regime:8} {measured.step:7.3f} {measured.saving:8.3f} "
        f"{between(measured.low, measured.high)} {ms(predicted.saving, 9)} {between(predicted.low, predicted.high)} "
        f"{off:>6} {ms(predicted.blocked)} {ms(predicted.idle, 7)}  {'+'.join(predicted.rules)}{marks}"
    )


def summary(kind: str, mode: str, result: Score) -> str:
    def percent(values: tuple[float, float]) -> str:
        return f"median {100 * values[0]:.1f} %, worst {100 * values[1]:.1f} %"

    return (
        f"{kind:10} {mode:8} {result.rows:3d} scored, {result.unanswered} without an answer: "
        f"off by {percent((result.median, result.worst))} of the step; {result.overpromised} over twice; "
        f"range holds {100 * result.held:.0f} %, at most {100 * result.widest:.1f} % wide | "
        f"blocked time: {percent(result.blocked)} | idle time: {percent(result.idle)}"
    )


NARROW = 0.01
"""Width of the measured interval, as a share of the step, of a pair that is well measured."""

PARTS: dict[str, Callable[[Row], bool]] = {
    "all": lambda row: True,
    "over 4 % of the step": lambda row: row.measured.saving > GREAT * row.measured.step,
    "bound by the host": lambda row: row.regime == "host",
    "of them within 1 %": lambda row: row.regime == "host" and row.measured.width <= NARROW,
    "balanced": lambda row: row.regime == "balanced",
    "bound by the device": lambda row: row.regime == "device",
    "at the power limit": lambda row: row.predicted.capped,
    "CUDA graphs": lambda row: row.pair.question == "CUDA graph",
    "behind a loader": lambda row: row.pair.program.startswith("loader") or bool(row.pair.asked),
    "public programs": lambda row: row.pair.patched,
}
"""What is summed up by itself."""


def part(name: str, result: Summary) -> str:
    return (
        f"{name:22} {result.rows:3d} scored: near {100 * result.near:3.0f} %, in range {100 * result.inside:3.0f} %, "
        f"answered {100 * result.answered:3.0f} %, worst off by {100 * result.worst:4.1f} % of the step, "
        f"median width {100 * result.width:4.1f} % | all {result.every} by their intervals: "
        f"near {100 * result.possible:.0f} %, in range {100 * result.met:.0f} %"
    )


TOGETHER: dict[str, Callable[[Row], bool]] = {
    "All contacts": lambda row: row.pair.contact > 0,
    "All pairs": lambda row: True,
}
"""What is summed up over the sets."""

FAR = 0.05
"""Share of the step by which no prediction is to be off."""


def far(every: Sequence[Row]) -> str:
    """The scored recordings that are off by more than ``FAR`` and out of their range."""
    found = [
        f"{row.pair.name} {row.mode}"
        for row in every
        if row.predicted.saving is not None
        and not row.unscored
        and not row.inside
        and abs(row.predicted.saving - row.measured.saving) > FAR * row.measured.step
    ]
    return f"off by more than {100 * FAR:.0f} % of the step and out of the range: {len(found)}: {', '.join(found)}"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("recordings", type=Path, nargs="?", default=RECORDINGS)
    options = parser.parse_args()
    every = rows(options.recordings)
    if not every:
        print(
            f"{options.recordings}: no recordings; make them with python -m benchmarks.savings.record", file=sys.stderr
        )
        return 3
    told = rows(options.recordings, told=True)
    for title, wanted in SETS.items():
        mine = [row for row in every if wanted(row.pair)]
        if not mine:
            continue
        print(f"{title}\n{HEAD}")
        for row in sorted(mine, key=lambda row: (row.pair.kind, row.pair.question, row.pair.name)):
            print(line(row))
        print()
        for kind, mode in itertools.product(("wait", "transform"), MODES):
            print(summary(kind, mode, score([row for row in mine if row.mode == mode], kind)))
        for name, holds in PARTS.items():
            if some := [row for row in mine if holds(row)]:
                print(part(name, summarise(some)))
        print(part("all, told the step", summarise([row for row in told if wanted(row.pair)])) + "\n")
    for title, holds in TOGETHER.items():
        mine, same = ([row for row in some if holds(row)] for some in (every, told))
        print(f"{title}\n{part('all', summarise(mine))}\n{part('all, told the step', summarise(same))}\n{far(mine)}\n")
    (options.recordings / "savings.svg").write_text(draw(every), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
