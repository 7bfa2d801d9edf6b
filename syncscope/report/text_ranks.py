"""Print several traces in a terminal: a row for each notable one, and which rank waits for which."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterable, Sequence
from itertools import zip_longest

from rich.cells import cell_len
from rich.console import Console
from rich.table import Table
from rich.text import Text

from syncscope.report.escape import log_line, terminal
from syncscope.report.notable import notable
from syncscope.report.numbers import count, milliseconds
from syncscope.report.text_lines import line
from syncscope.report.trace_phrases import label_by_number
from syncscope.report.worth_phrases import answer_asked
from syncscope.schema.ranks import BetweenRanks, RankBetween, Unread
from syncscope.schema.report import Report, TraceInfo

MOST_ROWS = 16
"""Rows of a table; what is left out is summed up below them."""

MOST_PATHS = 10
"""Paths printed of traces that have no rank, or that could not be read."""

NO_OFFSET_MS = 0.05
"""Clocks closer than this count as equal: on one host the ends of a collective differ by some microseconds."""

GAP = 2
"""Cells before each column."""
LEAST_NAME = 8
SHORT = {"recorded idle": "idle", "copies exposed": "exposed"}
"""Headings where there is no room for longer ones."""

Row = list[str]


def render(report: Report, console: Console) -> None:
    """Print what the traces share, a row for each, and how the ranks wait for each other."""
    traces = report.traces
    devices = sorted({terminal(info.device) for info in traces if info.device})
    builds = sorted({f"torch {terminal(info.torch)}" for info in traces if info.torch})
    title = " · ".join([count(len(traces), "trace"), *devices, *builds])
    line(console, Text(title, style="bold"), hang=2)
    names, shown = label_by_number(traces), notable(report, MOST_ROWS)
    rows = [[names[number], *_cells(traces[number])] for number in shown]
    if len(shown) < len(traces):
        rows += [
            ["…"],
            ["median of all", *_summary(traces, statistics.median)],
            ["most of all", *_summary(traces, max)],
        ]
    _table(console, ["", "steps", "step", "waits", "with line", "recorded idle", "copies exposed"], rows)
    _answers(report, shown, names, console)
    numbered = [number for number in shown if names[number].startswith("#")]
    for number in numbered[:MOST_PATHS]:
        line(console, Text(f"{names[number]} {terminal(traces[number].path)}"), 2, hang=len(names[number]) + 1)
    if report.between_ranks is not None:
        console.print()
        _between(report.between_ranks, names, set(shown), console)


def _answers(report: Report, shown: Sequence[int], names: Sequence[str], console: Console) -> None:
    """What changes would save that no finding speaks of, on the first trace of each phase that has such."""
    told: set[str | None] = set()
    for number in shown:
        info = report.traces[number]
        answers = [] if info.phase in told else list(answer_asked(info))
        told |= {info.phase} if answers else set()
        for text in answers:
            line(console, Text(f"{terminal(names[number])}: {terminal(text)}"), 2, hang=2)


def unread(entries: Sequence[Unread], console: Console) -> None:
    """Print the traces that could not be read."""
    for entry in entries[:MOST_PATHS]:
        text = Text.assemble(("not read ", "bold red"), f"{terminal(entry.path)}: {terminal(entry.why)}")
        line(console, text, hang=9)
    if len(entries) > MOST_PATHS:
        line(console, Text.assemble(("not read ", "bold red"), f"{len(entries) - MOST_PATHS} more"))


def _cells(info: TraceInfo) -> Row:
    idle, copies = (info.overlap.idle_ms, info.overlap.copy_exposed_ms) if info.overlap else (None, None)
    counts = [str(number) for number in (info.coverage.waits, info.coverage.with_line)]
    return [str(info.steps.count), _figure(_step(info)), *counts, _figure(idle), _figure(copies)]


def _summary(traces: Sequence[TraceInfo], of: Callable[[Iterable[float]], float]) -> Row:
    overlaps = [info.overlap for info in traces if info.overlap]
    steps = [ms for info in traces if (ms := _step(info)) is not None]

    def time(values: list[float]) -> str:
        return _figure(of(values) if values else None)

    return [
        f"{of([info.steps.count for info in traces]):.4g}",
        time(steps),
        f"{of([info.coverage.waits for info in traces]):.4g}",
        f"{of([info.coverage.with_line for info in traces]):.4g}",
        time([overlap.idle_ms for overlap in overlaps]),
        time([overlap.copy_exposed_ms for overlap in overlaps]),
    ]


def _step(info: TraceInfo) -> float | None:
    return info.steps.bare_ms if info.steps.bare_ms is not None else info.steps.profiled_ms


def _between(between: BetweenRanks, names: Sequence[str], shown: set[int], console: Console) -> None:
    rows = [row for row in between.ranks if row.trace in shown]
    apart = [row for row in between.ranks if tells_apart(row)]
    met = count(between.collectives, "time")
    steps, per = ("", "in all") if between.whole else (f" in {count(between.steps, 'step')}", "a step")
    lead = f"the ranks met {met}{steps}, where collectives in a row count as one; times are {per}"
    line(console, Text(lead, style="bold"), hang=2)
    head = ["", "last", "holds others", "waits", "for"]
    cells = [
        [
            names[row.trace],
            f"{row.last} ×",
            milliseconds(row.holds_ms_per_step),
            milliseconds(row.waits_ms_per_step),
            _for(row, names),
            *([_clock(row, between)] if apart else []),
        ]
        for row in rows
    ]
    if len(rows) < len(between.ranks):
        cells += [["…"], _median(between)]
    _table(console, [*head, *(["clock"] if apart else [])], cells)
    later = max(between.ranks, key=lambda row: row.holds_before_ms or 0)
    if later.holds_before_ms is not None and later.holds_before_ms >= NO_OFFSET_MS:
        first = "recording" if between.whole else "the first recorded step"
        began = f"{names[later.trace]} began {first} later: the others waited"
        waited = f"{began} {milliseconds(later.holds_before_ms)} once for it, which is not in the table"
        line(console, Text(waited, style="dim"), 2, hang=2)
    known = [row for row in between.ranks if row.clock_offset_ms is not None]
    if known and not apart and len(known) > 1:
        most = max(abs(row.clock_offset_ms or 0.0) for row in known)
        line(console, Text(f"their clocks agree within {milliseconds(most)}", style="dim"), 2, hang=2)


def _median(between: BetweenRanks) -> Row:
    last = statistics.median(row.last for row in between.ranks)
    holds = statistics.median(row.holds_ms_per_step for row in between.ranks)
    waits = statistics.median(row.waits_ms_per_step for row in between.ranks)
    return ["median of all", f"{last:.4g} ×", milliseconds(holds), milliseconds(waits)]


def _for(row: RankBetween, names: Sequence[str]) -> str:
    """The rank that this one waits for most, with its share where it waits for others too."""
    if not row.waits_for:
        return "–"
    one = row.waits_for[0]
    share = round(100 * one.ms_per_step / row.waits_ms_per_step) if row.waits_ms_per_step else 100
    return names[one.trace] + ("" if share >= 100 else f" {share} %")


def tells_apart(row: RankBetween) -> bool:
    """Whether a rank's clock differs from the reference's by more than the ends of collectives do anyway."""
    offset, spread = row.clock_offset_ms, row.clock_spread_ms
    return offset is not None and spread is not None and abs(offset) >= max(NO_OFFSET_MS, 3 * spread)


def _clock(row: RankBetween, between: BetweenRanks) -> str:
    if row.trace == between.reference:
        return "reference"
    if row.clock_offset_ms is None or row.clock_spread_ms is None:
        return "unknown"
    if not tells_apart(row):
        return "the same"
    offset = row.clock_offset_ms
    return f"{'+' if offset > 0 else '−'}{milliseconds(abs(offset))} ± {milliseconds(row.clock_spread_ms)}"


def _table(console: Console, head: Sequence[str], rows: Sequence[Row]) -> None:
    """Figures are never cut. Where there is no room, headings are shorter, and then names."""
    room = _room(console, head, rows)
    if room < max(cell_len(row[0]) for row in rows):
        head = [SHORT.get(heading, heading) for heading in head]
        room = _room(console, head, rows)
    table = Table(box=None, padding=(0, 0, 0, GAP), pad_edge=True, header_style="dim")
    table.add_column(head[0], no_wrap=True, max_width=max(room, LEAST_NAME))
    for heading, width in zip(head[1:], _widths(head, rows)[1:], strict=True):
        table.add_column(heading, justify="right", no_wrap=True, min_width=width)
    for row in rows:
        table.add_row(*(Text(log_line(cell)) for cell in row))
    console.print(table)


def _room(console: Console, head: Sequence[str], rows: Sequence[Row]) -> int:
    """The cells that are left for names."""
    return console.width - GAP - sum(width + GAP for width in _widths(head, rows)[1:])


def _widths(head: Sequence[str], rows: Sequence[Row]) -> list[int]:
    """The cells that each column needs."""
    return [max(map(cell_len, column)) for column in zip_longest(head, *rows, fillvalue="")]


def _figure(ms: float | None) -> str:
    return "–" if ms is None else milliseconds(ms)
