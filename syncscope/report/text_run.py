"""Print the whole run in a terminal: what was counted, and a row for each phase."""

from __future__ import annotations

from collections.abc import Sequence

from rich.cells import cell_len
from rich.console import Console
from rich.table import Table
from rich.text import Text

from syncscope.report.compiling_phrases import describe_compiling
from syncscope.report.escape import log_line, terminal
from syncscope.report.phase_lines import describe_lines
from syncscope.report.run_phrases import (
    describe_caveats,
    describe_difference,
    describe_recorded,
    describe_run,
    describe_share,
    describe_step,
    describe_waits,
)
from syncscope.report.runs import Process, group_processes
from syncscope.report.text_lines import line
from syncscope.report.trace_phrases import join_labels, label_processes
from syncscope.schema.report import Report
from syncscope.schema.run import Run

MOST_PHASES = 6
"""Phases that have a row; the JSON report has all."""
MOST_DIFFERENT = 8
"""Ranks whose run is said to differ."""
MOST_RUNS = 4
"""Runs of one report that are printed."""
INDENT = 2
GAP = 2
LEAST_PLACE = 12
"""Cells that the place of a phase's loop has at least, where there is one."""
HEAD = ("time", "steps", "step", "p95", "waits", "recorded")
PERCENTILE = HEAD.index("p95")
"""The column that gives way where the names of phases would be cut."""
WIDE_HEAD = ("time", "steps", "step", "p95", "waits a step", "recorded steps")
WIDE = 100
"""Cells of a terminal that has room for the longer headings."""


def show_runs(report: Report, console: Console) -> None:
    """Print each run once, with the ranks in which it looks different."""
    processes = group_processes(report.traces)
    labels = label_processes(processes, report.traces)
    runs: dict[str, list[int]] = {}
    for number, process in enumerate(processes):
        runs.setdefault(process.run.id, []).append(number)
    for numbers in list(runs.values())[:MOST_RUNS]:
        mine = [processes[number] for number in numbers]
        _one_run(mine, [labels[number] for number in numbers], console, several=len(runs) > 1)
    if len(runs) > MOST_RUNS:
        line(console, Text(f"… and {len(runs) - MOST_RUNS} more runs", style="dim"))


def _one_run(processes: Sequence[Process], labels: Sequence[str], console: Console, *, several: bool) -> None:
    """Print a run, named by its traces where it is one of ``several`` or has several processes."""
    first = processes[0].run
    different = [describe_difference(process.run, first) for process in processes]
    alike = [label for label, said in zip(labels, different, strict=True) if not said]
    whose = f", {terminal(join_labels(alike))}" if several or len(processes) > 1 else ""
    title = Text.assemble((f"the run{whose}: ", "bold"), terminal(describe_run(first)))
    line(console, title, hang=INDENT)
    _phases(first, console)
    for sentence in (*describe_lines(first), *describe_compiling(first)):
        line(console, Text(terminal(sentence)), INDENT, hang=INDENT)
    for caveat in describe_caveats(first):
        line(console, Text(terminal(caveat), style="yellow"), INDENT, hang=INDENT)
    others = [(label, said) for label, said in zip(labels, different, strict=True) if said]
    for label, said in others[:MOST_DIFFERENT]:
        text = Text.assemble((f"{terminal(label)} differs: ", "yellow"), terminal("; ".join(said)))
        line(console, text, INDENT, hang=INDENT)
    if len(others) > MOST_DIFFERENT:
        line(console, Text(f"… and {len(others) - MOST_DIFFERENT} more differ", style="yellow"), INDENT)


def _phases(run: Run, console: Console) -> None:
    """A row for each phase, the longest first."""
    order = sorted(range(len(run.phases)), key=lambda number: -run.phases[number].share)
    rows, left = [_row(run, number) for number in order[:MOST_PHASES]], order[MOST_PHASES:]
    if left:
        share = sum(run.phases[number].share for number in left)
        rows.append([f"… {len(left)} more", "", describe_share(share), *[""] * (len(HEAD) - 1)])
    if not rows:
        return
    head: Sequence[str] = WIDE_HEAD if console.width >= WIDE else HEAD
    names, places = _widths(head, rows, console.width - INDENT)
    longest = max(cell_len(row[0]) for row in rows)
    if names < longest and console.width < WIDE:
        shorter, fewer = _without(head, PERCENTILE), [_without(row, PERCENTILE + 2) for row in rows]
        if _widths(shorter, fewer, console.width - INDENT)[0] == longest:
            head, rows, names, places = shorter, fewer, longest, 0
    table = Table(box=None, padding=(0, 0, 0, GAP), pad_edge=True, header_style="dim")
    for heading in ("", *([""] if places else [])):
        table.add_column(heading, no_wrap=True)
    for heading in head:
        table.add_column(heading, justify="right", no_wrap=True)
    for name, place, *figures in rows:
        found = [Text(_front(name, names)), *([Text(_short_place(place, places), style="dim")] if places else [])]
        table.add_row(*found, *figures)
    console.print(table, soft_wrap=False)


def _without(row: Sequence[str], number: int) -> list[str]:
    """A row without one of its columns."""
    return [*row[:number], *row[number + 1 :]]


def _row(run: Run, number: int) -> list[str]:
    phase = run.phases[number]
    steps = str(phase.steps) if phase.steps else "–"
    return [
        log_line(terminal(phase.name)),
        terminal(phase.where or ""),
        describe_share(phase.share),
        steps,
        *describe_step(phase.step_ms),
        describe_waits(phase),
        describe_recorded(run, number),
    ]


def _widths(head: Sequence[str], rows: Sequence[Sequence[str]], width: int) -> tuple[int, int]:
    """The cells that names and places may take; 0 for places where there is no room. A name comes first: it tells
    phases apart, and ``--phase`` takes it."""
    figures = zip(head, *(row[2:] for row in rows), strict=True)
    room = width - sum(max(map(cell_len, column)) + GAP for column in figures)
    longest, place = (max(cell_len(row[column]) for row in rows) for column in (0, 1))
    names = min(longest, max(room, 8))
    left = room - names - GAP
    return names, min(place, left) if left >= LEAST_PLACE else 0


def _front(text: str, width: int) -> str:
    """The text, cut at its end."""
    shown = Text(text)
    shown.truncate(max(width, 1), overflow="ellipsis")
    return shown.plain


def _short_place(where: str, width: int) -> str:
    """A place, without folders where there is no room: the file and the line are worth more, and then the function."""
    if cell_len(where) <= width:
        return where
    file = where.rsplit("/", 1)[-1]
    return _front(f"…/{file}" if cell_len(file) <= width - 2 else file, width)
