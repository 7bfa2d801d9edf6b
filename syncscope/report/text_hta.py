"""HTA's tables for a terminal."""

from __future__ import annotations

import io

from rich.console import Console
from rich.table import Table
from rich.text import Text

from syncscope.report.escape import terminal
from syncscope.report.text_lines import line
from syncscope.schema.hta import HTA, Cell, HTATable
from syncscope.schema.report import HTAReport

FILE_WIDTH = 120


def to_text(report: HTAReport) -> str:
    """The same without colours, for a file."""
    buffer = io.StringIO()
    show(report, Console(file=buffer, width=FILE_WIDTH, color_system=None, force_terminal=False))
    return buffer.getvalue()


def show(report: HTAReport, console: Console) -> None:
    """Print the tables of every trace."""
    for trace in report.traces:
        where = f"{trace.path} · rank {trace.rank}" if trace.rank is not None else trace.path
        show_hta(trace.hta, console, where)


def show_hta(hta: HTA, console: Console, label: str | None) -> None:
    """Print the tables of one trace under a heading."""
    line(console, Text("HTA" if label is None else f"HTA · {terminal(label)}", style="bold"))
    line(console, Text(about(hta), style="dim"), indent=2)
    for table in hta.tables:
        _table(table, console)
    console.print()


def about(hta: HTA) -> str:
    """What made the tables, and what HTA did to the trace before."""
    facts = [terminal(hta.release)]
    if hta.last_step_left_out:
        facts.append("the last profiler step left out")
    if hta.rounded:
        facts.append("times rounded inwards to whole µs")
    return ", ".join(facts)


def title(table: HTATable) -> str:
    return terminal(table.analysis).replace("_", " ")


def _table(table: HTATable, console: Console) -> None:
    console.print()
    if table.why is not None:
        line(console, Text.assemble((title(table), "bold"), f": not run: {terminal(table.why)}"), indent=2, hang=2)
        return
    line(console, Text(title(table), style="bold"), indent=2)
    grid = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim")
    for position, name in enumerate(table.columns):
        text = any(isinstance(row[position], str) for row in table.rows)
        grid.add_column(Text(_inert(name).replace("_", " ")), justify="left" if text else "right", overflow="fold")
    for row in table.rows:
        grid.add_row(*(Text(cell(value)) for value in row))
    console.print(grid)


def cell(value: Cell) -> str:
    if value is None:
        return "—"
    return _inert(value) if isinstance(value, str) else f"{value:,}" if isinstance(value, int) else f"{value:g}"


def _inert(text: str) -> str:
    """A cell wraps anywhere, so no part of it may read as a command of GitHub's log."""
    return terminal(text).replace("::", ": :")
