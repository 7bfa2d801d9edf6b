"""The tables of one contact for ``docs/evidence.md``: ``python -m benchmarks.savings.section 5 [RECORDINGS]``.

Prints the scores of its parts and a row for each pair, as Markdown.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from benchmarks.savings.scores import DRIFTED, RECORDINGS, Row, Summary, rows, summarise
from benchmarks.savings.table import PARTS

HEAD = """\
| set | scored | near | in range | answered | worst off by | median width | all | near | in range |
|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|"""
PAIRS = """\
| pair | step | measured | 95 % interval | predicted | range | |
|---|--:|--:|---|--:|---|---|"""


def percent(share: float, digits: int = 0) -> str:
    return "–" if share != share else f"{100 * share:.{digits}f} %"  # NaN where there is none


def part(name: str, result: Summary) -> str:
    shares = (result.near, result.inside, result.answered)
    cells = [name, str(result.rows), *map(percent, shares), percent(result.worst, 1), percent(result.width, 1)]
    return "| " + " | ".join([*cells, str(result.every), percent(result.possible), percent(result.met)]) + " |"


def pair(row: Row) -> str:
    measured, predicted = row.measured, row.predicted
    said = []
    if row.unscored:
        said.append("not scored" + (f": {row.unscored}" if "interval" not in row.unscored else ""))
    else:
        said += ["not near"] if predicted.saving is not None and not row.near else []
        said += ["outside the range"] if predicted.low is not None and not row.inside else []
    said += [f"recorded while a step took {100 * row.drift:+.0f} %"] if abs(row.drift) > DRIFTED else []
    answer = "–" if predicted.saving is None else f"{predicted.saving:.3f}"
    between = "–" if predicted.low is None else f"{predicted.low:.3f} – {predicted.high:.3f}"
    interval = f"{measured.low:.3f} – {measured.high:.3f}"
    cells = [f"`{row.pair.name}`", f"{measured.step:.3f}", f"{measured.saving:.3f}", interval, answer, between]
    return "| " + " | ".join([*cells, ", ".join(said)]) + " |"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("contact", type=int)
    parser.add_argument("recordings", type=Path, nargs="?", default=RECORDINGS)
    options = parser.parse_args()
    every = rows(options.recordings, lambda pair: pair.contact == options.contact)
    if not every:
        print(f"{options.recordings}: no recordings of contact {options.contact}", file=sys.stderr)
        return 3
    print(HEAD)
    for name, holds in PARTS.items():
        if some := [row for row in every if holds(row)]:
            print(part(name, summarise(some)))
    told = rows(options.recordings, lambda pair: pair.contact == options.contact, told=True)
    print(part("told the step", summarise(told)))
    print(f"\n{PAIRS}")
    for row in sorted(every, key=lambda row: row.pair.name):
        print(pair(row))
    return 0


if __name__ == "__main__":
    sys.exit(main())
