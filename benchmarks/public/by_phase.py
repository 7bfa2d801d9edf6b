"""How many steps each phase has, by labels written before the run and by the report: ``python -m
benchmarks.public.by_phase DIR …``.

``DIR`` is what ``proof`` left. ``labels.json`` names phases as the program does (``vali``, ``train_flow``), a report by
what they are, so the steps of all phases of one kind are compared. Programs that had to be ended are left out.
"""

from __future__ import annotations

import argparse
import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

LABELS = Path(__file__).parent / "labels.json"

KINDS = {
    "train": "main optimize learn train train_flow train_one_epoch",
    "evaluate": (
        "check_accuracy compute_all_embeddings eval evaluate exploit explain plot predict test val vali validate "
        "validation"
    ),
    "generate": "generate sample",
    "rollout": "explore rollout select_action",
}
"""What phases are whose names in the labels begin with these words."""

KIND_OF = {word: kind for kind, words in KINDS.items() for word in words.split()}


class Compared(NamedTuple):
    """Phases of one kind of a program."""

    program: str
    kind: str
    labelled: int
    told: int
    ranks: int

    @property
    def equal(self) -> bool:
        return self.told == self.labelled * self.ranks


def labelled_steps(phases: Mapping[str, int | None]) -> dict[str, int]:
    """The steps of each kind that are known for all of its phases."""
    known: Counter[str] = Counter()
    unknown = set()
    for name, steps in phases.items():
        kind = KIND_OF.get(name.split()[0])
        if kind is not None and steps is not None:
            known[kind] += steps
        elif kind is not None:
            unknown.add(kind)
    return {kind: steps for kind, steps in known.items() if kind not in unknown}


def compare(labels: Mapping[str, Any], every: Iterable[Mapping[str, Any]]) -> Iterator[Compared]:
    for details in every:
        label, compared = labels.get(details["program"]), details.get("compared")
        if label is None or not isinstance(compared, dict):
            continue
        if any(run["status"] != 0 for run in details.get("runs", {}).values()):
            continue
        told: Counter[str] = Counter()
        for phase in compared["phases"]:
            told[phase["kind"]] += phase["steps"]
        for kind, steps in labelled_steps(label["phases"]).items():
            yield Compared(details["program"], kind, steps, told[kind], compared["processes"])


def read(folders: Iterable[Path]) -> list[dict[str, Any]]:
    """What ``proof`` left of each program, the last of those that it left several times."""
    found = (json.loads(text) for folder in folders for text in (folder / "details.jsonl").read_text().splitlines())
    return list({details["program"]: details for details in found}.values())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folders", nargs="+", type=Path, metavar="DIR")
    every = list(compare(json.loads(LABELS.read_text()), read(parser.parse_args().folders)))
    for one in every:
        mark = "" if one.equal else "   differs"
        print(f"{one.program:22} {one.kind:9} {one.labelled * one.ranks:6} labelled {one.told:6} told{mark}")
    programs = len({one.program for one in every})
    print(
        f"{sum(one.equal for one in every)} of {len(every)} phases of {programs} programs have the steps of the labels"
    )


if __name__ == "__main__":
    main()
