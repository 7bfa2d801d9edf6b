"""The tables of ``docs/evidence.md`` from what ``proof`` left: ``python -m benchmarks.public.evidence H200=DIR …``.

Each ``DEVICE=DIR`` is what to call a machine, and the output folder of a proof on it. Of a program that ran in several,
the last counts; with ``--add``, the page's rows of other programs stay. Rows are of programs that ended well alone,
and that no run of which had to be ended: cut runs would compare different work. The totals are sums of the rows.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.public.table import PROGRAMS, Program

PAGE = Path(__file__).parents[2] / "docs" / "evidence.md"
TOTALS = "<!-- begin of the totals -->\n", "<!-- end of the totals -->\n"
ROWS = "<!-- begin of the rows -->\n", "<!-- end of the rows -->\n"

TOTALS_HEAD = "| | programs | lines | found | with the exact count |\n|---|--:|--:|--:|--:|\n"
ROWS_HEAD = (
    "| program (repository) | kind | device | lines | found | exact | warned | counted | 1 in | phases | recorded | "
    "status |\n|---|---|---|--:|--:|--:|--:|--:|--:|---|---|--:|\n"
)
NAMED = ("train", "evaluate", "generate", "rollout")
"""Kinds of phases that are named although their steps could not be told."""


@dataclass(frozen=True)
class Row:
    """One program on one machine, with what ``Compared.as_json`` says."""

    program: Program
    device: str
    compared: dict[str, Any]
    statuses: dict[str, int]

    @property
    def lines(self) -> int:
        return len(self.compared["lines"])

    @property
    def found(self) -> int:
        return sum(line["reported"] > 0 for line in self.compared["lines"])

    @property
    def exact(self) -> int:
        return sum(round(line["reported"]) == line["warned"] for line in self.compared["lines"])

    @property
    def whole(self) -> bool:
        """Every step was counted."""
        return bool(self.compared["one_in"] == 1)

    def sum_of(self, count: str) -> float:
        return sum(float(line[count]) for line in self.compared["lines"])

    def in_markdown(self) -> str:
        status, ours = self.statuses["bare"], self.statuses.get("profile", self.statuses.get("watch"))
        cells = (
            f"{self.program.name} ({self.program.repository})", self.program.kind, self.device,
            self.lines, self.found, self.exact, _grouped(self.sum_of("warned")), _grouped(self.sum_of("counted")),
            f"{self.compared['one_in']:.3g}", _phases(self.compared["phases"]), _windows(self.compared["windows"]),
            status if status == ours else f"{status}→{ours}",
        )  # fmt: skip
        return f"| {' | '.join(map(str, cells))} |\n"


@dataclass(frozen=True)
class KeptRow:
    """A row that the page has already, in Markdown."""

    program: Program
    text: str

    def _cell(self, number: int) -> str:
        return self.text.split("|")[number + 1].strip()

    @property
    def lines(self) -> int:
        return int(self._cell(3))

    @property
    def found(self) -> int:
        return int(self._cell(4))

    @property
    def exact(self) -> int:
        return int(self._cell(5))

    @property
    def whole(self) -> bool:
        return self._cell(8) == "1"

    def in_markdown(self) -> str:
        return self.text


AnyRow = Row | KeptRow


def kept_rows(page: str) -> list[KeptRow]:
    """The rows of ``page``, of programs that are still in the list."""
    programs = {program.name: program for program in PROGRAMS}
    table = page.split(ROWS[0])[1].split(ROWS[1])[0]
    names = (
        (text.split("|")[1].split("(")[0].strip(), text) for text in table.splitlines(keepends=True) if "|" in text
    )
    return [KeptRow(programs[name], text) for name, text in names if name in programs]


def added(rows: Sequence[Row], kept: Sequence[KeptRow]) -> list[AnyRow]:
    """``rows``, and those of ``kept`` whose programs have none, in the order of the list."""
    by_name: dict[str, AnyRow] = {row.program.name: row for row in (*kept, *rows)}
    return [by_name[program.name] for program in PROGRAMS if program.name in by_name]


def read_rows(results: Iterable[tuple[str, Path]]) -> list[Row]:
    """The rows of the programs, in the order of the list. Raises ``OSError`` and ``ValueError`` for no results."""
    programs = {program.name: program for program in PROGRAMS}
    rows: dict[str, Row] = {}
    for device, folder in results:
        for text in (folder / "details.jsonl").read_text().splitlines():
            details = json.loads(text)
            compared, program = details.get("compared"), programs.get(details["program"])
            statuses = {mode: run["status"] for mode, run in details.get("runs", {}).items()}
            comparable = statuses.get("bare") == 0 and "timeout" not in statuses.values()
            if isinstance(compared, dict) and program is not None and comparable:
                rows[program.name] = Row(program, device, compared, statuses)
    return [rows[program.name] for program in PROGRAMS if program.name in rows]


def totals(rows: Sequence[AnyRow]) -> str:
    """How many of the lines were found, by whether every step was counted."""
    repositories = {row.program.repository for row in rows}
    lines = sum(row.lines for row in rows)
    said = f"{len(rows)} programs of {len(repositories)} repositories, and {lines} lines of which PyTorch warned:\n\n"
    kinds = (
        ("every step was counted", [row for row in rows if row.whole]),
        ("steps were drawn in at least one phase, or counting paused", [row for row in rows if not row.whole]),
    )
    table = "".join(
        f"| {kind} | {len(some)} | {sum(row.lines for row in some)} | {sum(row.found for row in some)} | "
        f"{sum(row.exact for row in some)} |\n"
        for kind, some in kinds
    )
    return said + TOTALS_HEAD + table


def written(page: str, rows: Sequence[AnyRow]) -> str:
    """``page`` with both tables. Raises ``ValueError`` where it has no place for them."""
    page = _between(page, TOTALS, totals(rows))
    return _between(page, ROWS, ROWS_HEAD + "".join(row.in_markdown() for row in rows))


def _between(page: str, marks: tuple[str, str], text: str) -> str:
    before, rest = page.split(marks[0])
    _, after = rest.split(marks[1])
    return f"{before}{marks[0]}{text}{marks[1]}{after}"


def _grouped(number: float) -> str:
    return f"{round(number):,}"


def _phases(phases: Sequence[dict[str, Any]]) -> str:
    """The phases of each process that has steps, with their steps; alike ones once."""
    processes: list[list[str]] = []
    for phase in phases:
        if phase["kind"] == "start" or not processes:
            processes.append([])
        if phase["kind"] != "start" and (phase["steps"] or phase["kind"] in NAMED):
            processes[-1].append(f"{phase['name']}: {_grouped(phase['steps'])}")
    texts = [", ".join(process) for process in processes]
    several = ((texts.count(text), text) for text in dict.fromkeys(texts))
    return "; ".join(f"{count} × {text}" if count > 1 else text for count, text in several)


def _windows(windows: Sequence[str]) -> str:
    """``train 25–29`` from ``rank 0 train 25-30 of 60``."""
    shown = []
    for window in windows:
        name, steps = window.rsplit(" ", 2)[0].rsplit(" ", 1)
        first, end = map(int, steps.split("-"))
        words = name.split(" ")
        name = " ".join(words[2:] if words[0] == "rank" else words)
        shown.append(f"{name} {first}–{end - 1}" if end - 1 > first else f"{name} {first}")
    return "; ".join(dict.fromkeys(shown)) or "–"


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("results", nargs="+", metavar="DEVICE=DIR")
    parser.add_argument("--page", type=Path, default=PAGE)
    parser.add_argument("--add", action="store_true", help="keep the page's rows of other programs")
    options = parser.parse_args(arguments)
    pairs = [result.partition("=") for result in options.results]
    if wrong := [device for device, mark, folder in pairs if not (device and mark and folder)]:
        parser.error(f"{wrong[0]}: write DEVICE=DIR")
    page = options.page.read_text()
    new = read_rows((device, Path(folder)) for device, _, folder in pairs)
    rows = added(new, kept_rows(page) if options.add else ())
    options.page.write_text(written(page, rows))
    print(totals(rows), file=sys.stderr)


if __name__ == "__main__":
    main()
