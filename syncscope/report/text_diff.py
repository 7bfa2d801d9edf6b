"""What changed between two reports, for a terminal."""

from __future__ import annotations

import io
from collections.abc import Sequence

from rich.console import Console
from rich.text import Text

from syncscope.compare.diff import Change, Diff, Kind
from syncscope.compare.prediction import Outcome
from syncscope.report.diff_phrases import (
    describe_candidates,
    describe_doubts,
    describe_prediction,
    describe_step,
    format_counts,
    summarize_diff,
)
from syncscope.report.escape import terminal
from syncscope.report.finding_phrases import format_place
from syncscope.report.text import FILE_WIDTH
from syncscope.report.text_lines import line, place
from syncscope.report.verdict_phrases import join_codes

STYLES: dict[Kind, str] = {
    "new": "bold red",
    "more": "bold yellow",
    "unclear": "bold cyan",
    "fewer": "bold green",
    "fixed": "bold green",
}
"""In the order they are shown."""
PREDICTED: dict[Outcome, str] = {"as predicted": "green", "more": "green", "less": "yellow", "not measured": "dim"}


def render(diff: Diff, console: Console) -> None:
    """Print what is compared, the step, every change, and in the last line how many there are."""
    for label, paths in (("before ", diff.before), ("after  ", diff.after)):
        line(console, Text.assemble((label, "dim"), _named(paths)), hang=7)
    line(console, Text.assemble(("step   ", "dim"), describe_step(diff)), hang=7)
    if diff.predicted is not None and (said := describe_prediction(diff)):
        line(console, Text.assemble(("fixed  ", "dim"), (said, PREDICTED[diff.predicted.outcome])), hang=7)
        for doubt in describe_doubts(diff):
            line(console, Text(f"       {doubt}", style="dim"), hang=7)
    console.print()
    for kind in STYLES:
        for change in diff.of(kind):
            _change(change, console)
    if diff.not_compared:
        rules = join_codes([terminal(rule) for rule in diff.not_compared])
        line(console, Text.assemble(("not compared ", "bold yellow"), f"{rules}: not checked on both sides"), hang=2)
    line(console, Text(summarize_diff(diff), style="bold"), hang=2)


def to_text(diff: Diff) -> str:
    """The same without colours, for a file."""
    buffer = io.StringIO()
    render(diff, Console(file=buffer, width=FILE_WIDTH, color_system=None, force_terminal=False, force_jupyter=False))
    return buffer.getvalue()


def _named(paths: Sequence[str]) -> str:
    more = f" and {len(paths) - 1} more" if len(paths) > 1 else ""
    return f"{terminal(paths[0])}{more}"


def _change(change: Change, console: Console) -> None:
    finding = change.finding
    heading = Text.assemble(
        (change.kind, STYLES[change.kind]), f" {terminal(finding.rule)} ", (terminal(finding.name), "bold")
    )
    line(console, heading.append(f" · {format_counts(change)}"), hang=2)
    if finding.site is not None:
        line(console, place(finding.site, finding.site.expression, "bold cyan"), 2, hang=2)
    elif finding.op is not None:
        line(console, Text(f"{terminal(format_place(finding))}, {terminal(finding.op)}", style="dim"), 2, hang=2)
    if lines := describe_candidates(change):
        line(console, Text(lines, style="yellow"), 2)
    if finding.status == "expected":
        line(console, Text(f"expected: {terminal(finding.reason or '')}", style="dim"), 2, hang=2)
    if change.kind in ("new", "more"):
        line(console, Text.assemble(("fix: ", "green"), terminal(finding.fix)), 2, hang=5)
    console.print()
