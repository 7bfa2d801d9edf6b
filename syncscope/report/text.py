"""The summary engineers read in a terminal, legible at 80 columns.

Foreign names go through ``terminal`` into ``rich.text.Text``, which reads no markup.
"""

from __future__ import annotations

import io
from collections.abc import Iterable, Sequence

from rich.console import Console
from rich.text import Text

from syncscope.report import text_ranks
from syncscope.report.cards import choose_findings, lead_with, make_cards
from syncscope.report.conclusion import Conclusion, conclude
from syncscope.report.escape import terminal
from syncscope.report.missing_lines import explain_missing_lines
from syncscope.report.notable import notable
from syncscope.report.text_cards import show_cards
from syncscope.report.text_hta import show_hta
from syncscope.report.text_lines import line as _line
from syncscope.report.text_run import show_runs
from syncscope.report.text_trace import show_trace
from syncscope.report.trace_phrases import group_losses, group_no_savings, group_warnings, join_labels, label_by_number
from syncscope.report.verdict_phrases import (
    describe_baseline,
    describe_changes,
    explain_how_to_allow,
    join_codes,
    summarize_report,
    summarize_verdict,
)
from syncscope.report.view import WHOLE, View
from syncscope.schema.findings import Finding
from syncscope.schema.report import NotChecked, Report, Stale, TraceInfo
from syncscope.schema.verdict import Budget, BudgetOutcome, Verdict

BUDGET_STYLES: dict[BudgetOutcome, str] = {"kept": "dim", "exceeded": "bold red", "not checked": "bold yellow"}
INDENT = 2
LABEL = 10
"""Cells of the label of a line that opens the report."""
NEEDLESS = "not checked, and nothing here is what it is about "

MOST_HTA = 8
"""Traces whose HTA tables are printed; the JSON report has all."""
FILE_WIDTH = 100


def to_text(report: Report, verdict: Verdict | None = None, view: View = WHOLE) -> str:
    """The same without colours, for a file."""
    buffer = io.StringIO()
    console = Console(file=buffer, width=FILE_WIDTH, color_system=None, force_terminal=False, force_jupyter=False)
    show(report, verdict, console, view)
    return buffer.getvalue()


def show(report: Report, verdict: Verdict | None, console: Console, view: View = WHOLE) -> None:
    """Print the verdict where there is one, else the summary."""
    if verdict is None:
        render(report, console, view)
    else:
        render_verdict(verdict, report, console, view)


def render(report: Report, console: Console, view: View = WHOLE) -> None:
    """Print what to know first, the traces, unexpected findings by weight, and what could not be seen."""
    concluded = conclude(report)
    _opening(report, None, concluded, console)
    _traces(report, console, view)
    found = choose_findings(report)
    show_cards(lead_with(concluded.finding, make_cards(found)), report, console, view)
    _hta(report, console)
    _line(console, Text(summarize_report(report), style="bold"), hang=INDENT)
    _missing_lines(found, report, console)
    _stale(report.stale, console)
    if view.verbose:
        _not_checked(report.not_checked, report.traces, console)
    else:
        _not_checked_shortly(report, console)


def render_verdict(verdict: Verdict, report: Report, console: Console, view: View = WHOLE) -> None:
    """Print why a report fails, and in the last line whether it does."""
    _opening(report, verdict, conclude(report, verdict), console)
    _traces(report, console, view)
    show_cards(make_cards(verdict.unexpected), report, console, view, failing=True)
    _missing_lines(verdict.unexpected, report, console)
    _stale(verdict.stale, console)
    _budgets(verdict.budgets, report.traces, console)
    _not_checked(verdict.not_checked, report.traces, console)
    if baseline := describe_baseline(verdict):
        _line(console, Text(terminal(baseline)), hang=INDENT)
    for removed in describe_changes(verdict):
        _line(console, Text(terminal(removed)), hang=INDENT)
    if verdict.unexpected:
        _line(console, Text(terminal(explain_how_to_allow(verdict)), style="dim"), hang=INDENT)
    style = "bold red" if verdict.exit_code else "bold green"
    _line(console, Text(summarize_verdict(verdict, report), style=style))


def _opening(report: Report, verdict: Verdict | None, concluded: Conclusion, console: Console) -> None:
    """Print what was lost, and the lines that a reader should know first. That other ranks were not given comes behind
    these, unless a gate fails by it."""
    losses, behind = group_losses(report), {missing.text for missing in report.missing_ranks} if verdict is None else ()
    _losses([loss for loss in losses if loss[0] not in behind], console)
    text_ranks.unread(report.unread, console)
    for label, said in concluded.lines:
        _line(console, Text.assemble((f"{label:<{LABEL}}", "dim"), (terminal(said), "bold")), hang=LABEL)
    _losses([loss for loss in losses if loss[0] in behind], console)
    console.print()


def _losses(losses: Iterable[tuple[str, Sequence[str]]], console: Console) -> None:
    for loss, where in losses:
        _line(console, Text.assemble(("not all was seen: ", "bold red"), terminal(loss) + _at(where)), hang=INDENT)


def _traces(report: Report, console: Console, view: View) -> None:
    traces = report.traces
    if len(traces) == 1:
        show_trace(traces[0], console, view)
    else:
        text_ranks.render(report, console)
    if any(info.run is not None for info in traces):
        console.print()
        show_runs(report, console)
    for warning, where in group_warnings(report):
        _line(console, Text.assemble(("warning: ", "yellow"), terminal(warning) + _at(where)), hang=9)
    for why, where in group_no_savings(report) if not view.verbose or len(traces) > 1 else ():
        _line(console, Text.assemble(("no savings: ", "yellow"), terminal(why) + _at(where)), hang=INDENT)
    console.print()


def _at(labels: Sequence[str]) -> str:
    return f" ({join_labels(labels)})" if labels else ""


def _hta(report: Report, console: Console) -> None:
    names = label_by_number(report.traces)
    for number in notable(report, MOST_HTA):
        hta = report.traces[number].hta
        if hta is not None:
            show_hta(hta, console, names[number] if len(report.traces) > 1 else None)


def _missing_lines(findings: Sequence[Finding], report: Report, console: Console) -> None:
    if said := explain_missing_lines(findings, report):
        _line(console, Text(said, style="dim"), hang=INDENT)


def _stale(stale: Iterable[Stale], console: Console) -> None:
    for entry in stale:
        text = Text.assemble(("stale expectation ", "bold red"), f"{terminal(entry.where)}: {terminal(entry.rule)}")
        text.append(" matches nothing; delete it")
        if entry.reason:
            text.append(f' (it says "{terminal(entry.reason)}")', style="dim")
        _line(console, text, hang=INDENT)


def _budgets(budgets: Iterable[Budget], traces: Sequence[TraceInfo], console: Console) -> None:
    """Print the worst trace of each budget and outcome."""
    worst: dict[tuple[str, str], Budget] = {}
    for budget in budgets:
        known = worst.setdefault((budget.outcome, budget.title), budget)
        if (budget.found or 0) > (known.found or 0):
            worst[budget.outcome, budget.title] = budget
    names = label_by_number(traces)
    for budget in worst.values():
        where = f" ({names[budget.trace]})" if len(traces) > 1 else ""
        text = Text.assemble(
            (f"budget {budget.outcome} ", BUDGET_STYLES[budget.outcome]), f"{terminal(budget.title)}: "
        )
        _line(console, text.append(f"{terminal(budget.message)}{where}"), hang=INDENT)


def _not_checked(entries: Iterable[NotChecked], traces: Sequence[TraceInfo], console: Console) -> None:
    """Print the rules that could not be checked, or only in part, a line for each reason."""
    reasons: dict[tuple[str, bool], dict[str, None]] = {}
    where: dict[tuple[str, bool], dict[str, None]] = {}
    names = label_by_number(traces)
    partial: set[str] = set()
    for entry in sorted(entries, key=lambda entry: bool(entry.needless)):
        if entry.partial or entry.rest:
            partial.add(entry.why)
        key = entry.why, bool(entry.needless)
        reasons.setdefault(key, {})[terminal(entry.rule)] = None
        where.setdefault(key, {})[names[entry.trace]] = None
    for (why, needless), rules in reasons.items():
        on = f" (on {join_labels(where[why, needless])})" if len(where[why, needless]) < len(traces) else ""
        label = ("checked in part ", "dim") if why in partial else ("not checked ", "bold yellow")
        label = (NEEDLESS, "dim") if needless else label
        text = Text.assemble(label, f"{join_codes(sorted(rules))}: {terminal(why)}{on}")
        _line(console, text, hang=INDENT)


def _not_checked_shortly(report: Report, console: Console) -> None:
    """Name the rules that could not be checked on some trace though it may have what they look for, without the
    reasons. Those that found something nonetheless, or looked at all but a lost start, have not seen all."""
    unseen = [entry for entry in report.not_checked if not entry.partial and not entry.needless]
    rules = {terminal(entry.rule) for entry in unseen}
    of_rest = rules - {terminal(entry.rule) for entry in unseen if not entry.rest}
    in_part = of_rest | (rules & {terminal(finding.rule) for finding in report.findings})
    labels = (("not checked ", "bold yellow"), rules - in_part), (("checked in part ", "yellow"), in_part)
    parts = [Text.assemble(label, join_codes(sorted(codes))) for label, codes in labels if codes]
    if parts:
        text = Text(" · ").join(parts)
        _line(console, text.append(" (--verbose says why)", style="dim"), hang=INDENT)
