"""The summary engineers read in a terminal, legible at 80 columns.

Foreign names go through ``terminal`` into ``rich.text.Text``, which reads no markup.
"""

from __future__ import annotations

import io
from collections.abc import Iterable, Sequence

from rich.console import Console
from rich.text import Text

from syncscope.report import text_ranks
from syncscope.report.escape import terminal
from syncscope.report.finding_phrases import describe_cost, format_place, group_alike
from syncscope.report.gpu_phrases import describe_gpu
from syncscope.report.notable import notable
from syncscope.report.numbers import between, count, milliseconds, size
from syncscope.report.run_phrases import describe_source
from syncscope.report.runs import is_counted_only
from syncscope.report.text_hta import show_hta
from syncscope.report.text_lines import line as _line
from syncscope.report.text_lines import place as _place
from syncscope.report.text_run import show_runs
from syncscope.report.trace_phrases import (
    group_losses,
    group_warnings,
    join_labels,
    label_by_number,
    label_cause,
    was_shared,
)
from syncscope.report.verdict_phrases import (
    describe_baseline,
    describe_removed,
    explain_how_to_allow,
    summarize_report,
    summarize_verdict,
)
from syncscope.report.worth_phrases import describe_causes
from syncscope.schema.findings import Finding, Frame, Severity
from syncscope.schema.report import Asked, NotChecked, Report, Stale, TraceInfo
from syncscope.schema.verdict import Budget, BudgetOutcome, Verdict

STYLES: dict[Severity, str] = {"error": "bold red", "warning": "bold yellow", "note": "bold cyan"}
BUDGET_STYLES: dict[BudgetOutcome, str] = {"kept": "dim", "exceeded": "bold red", "not checked": "bold yellow"}
INDENT = 2
MOST_HTA = 8
"""Traces whose HTA tables are printed; the JSON report has all."""
FILE_WIDTH = 100


def to_text(report: Report, verdict: Verdict | None = None) -> str:
    """The same without colours, for a file."""
    buffer = io.StringIO()
    show(report, verdict, Console(file=buffer, width=FILE_WIDTH, color_system=None, force_terminal=False))
    return buffer.getvalue()


def show(report: Report, verdict: Verdict | None, console: Console) -> None:
    """Print the verdict where there is one, else the summary."""
    if verdict is None:
        render(report, console)
    else:
        render_verdict(verdict, report, console)


def render(report: Report, console: Console) -> None:
    """Print traces, unexpected findings by weight, what was expected, and what could not be seen."""
    _traces(report, console)
    unexpected = [finding for finding in report.findings if finding.status == "unexpected"]
    _findings(unexpected, report, console)
    _hta(report, console)
    _line(console, Text(summarize_report(report), style="bold"))
    _stale(report.stale, console)
    _not_checked(report.not_checked, report.traces, console)


def render_verdict(verdict: Verdict, report: Report, console: Console) -> None:
    """Print why a report fails, and in the last line whether it does."""
    _traces(report, console)
    _findings(verdict.unexpected, report, console)
    _stale(verdict.stale, console)
    _budgets(verdict.budgets, report.traces, console)
    _not_checked(verdict.not_checked, report.traces, console)
    if baseline := describe_baseline(verdict):
        _line(console, Text(terminal(baseline)), hang=INDENT)
    for removed in describe_removed(verdict):
        _line(console, Text(terminal(removed)), hang=INDENT)
    if verdict.unexpected:
        _line(console, Text(terminal(explain_how_to_allow(verdict)), style="dim"), hang=INDENT)
    style = "bold red" if verdict.exit_code else "bold green"
    _line(console, Text(summarize_verdict(verdict, report), style=style))


def _traces(report: Report, console: Console) -> None:
    traces = report.traces
    for loss, where in group_losses(report):
        _line(console, Text.assemble(("not all was seen: ", "bold red"), terminal(loss) + _at(where)), hang=INDENT)
    text_ranks.unread(report.unread, console)
    if len(traces) == 1:
        _one_trace(traces[0], console)
    else:
        text_ranks.render(report, console)
    if any(info.run is not None for info in traces):
        console.print()
        show_runs(report, console)
    for warning, where in group_warnings(report):
        _line(console, Text.assemble(("warning: ", "yellow"), terminal(warning) + _at(where)), hang=9)
    console.print()


def _at(labels: Sequence[str]) -> str:
    return f" ({join_labels(labels)})" if labels else ""


def _hta(report: Report, console: Console) -> None:
    names = label_by_number(report.traces)
    for number in notable(report, MOST_HTA):
        hta = report.traces[number].hta
        if hta is not None:
            show_hta(hta, console, names[number] if len(report.traces) > 1 else None)


def _one_trace(info: TraceInfo, console: Console) -> None:
    _line(console, Text(terminal(info.path), style="bold"))
    facts = [terminal(info.device) if info.device else "device unknown"]
    if info.torch:
        facts.append(f"torch {terminal(info.torch)}")
    if info.rank is not None:
        facts.append(f"rank {info.rank}")
    if is_counted_only(info):
        _line(console, Text(" · ".join([*facts, "no window was recorded: waits were counted only"])), INDENT)
        return
    _line(console, Text(" · ".join([*facts, *_steps(info)])), INDENT)
    _line(console, Text(_coverage(info)), INDENT)
    for line in (*_device_time(info), *describe_gpu(info.gpu), *_savings(info)):
        _line(console, Text(line), INDENT, hang=INDENT)


def _steps(info: TraceInfo) -> list[str]:
    steps = info.steps
    if not steps.count:
        return ["no steps"]
    facts = [count(steps.count, "step")]
    if steps.bare_ms is not None:
        facts.append(f"{milliseconds(steps.bare_ms)} a step")
    if steps.profiled_ms is not None:
        facts.append(f"{milliseconds(steps.profiled_ms)} under the profiler")
    return facts


def _coverage(info: TraceInfo) -> str:
    if "runtime" not in info.has:
        return "no runtime calls: waits cannot be seen"
    waits, lines = info.coverage.waits, info.coverage.with_line
    if not waits:
        return "no waits" + (" inside the steps" if info.steps.count else "")
    return f"{lines} of {count(waits, 'wait')} {'has' if waits == 1 else 'have'} a line"


def _device_time(info: TraceInfo) -> list[str]:
    overlap = info.overlap
    if overlap is None:
        return ["no device activity"]
    busy = [f"compute {milliseconds(overlap.compute_ms)}"]
    for label, whole, exposed in (
        ("copies", overlap.copy_ms, overlap.copy_exposed_ms),
        ("collectives", overlap.comm_ms, overlap.comm_exposed_ms),
    ):
        if whole > 0:
            busy.append(f"{label} {milliseconds(whole)} ({milliseconds(exposed)} exposed)")
    a_step = " a step" if info.steps.count else ""
    lines = [f"device busy {milliseconds(overlap.device_busy_ms)}{a_step}: {', '.join(busy)}"]
    causes = sorted(overlap.idle_by_cause.items(), key=lambda pair: -pair[1])
    parts = ", ".join(
        f"{terminal(label_cause(cause, was_shared(info)))} {milliseconds(ms)}" for cause, ms in causes if ms > 0
    )
    lines.append(f"device idle {milliseconds(overlap.idle_ms)}{a_step}" + (f": {parts}" if parts else ""))
    return lines


def _savings(info: TraceInfo) -> list[str]:
    """Print what the savings assume, or why there are none."""
    replay = info.replay
    if replay is None:
        return []
    if replay.null_why is not None:
        return [f"no savings: {terminal(replay.null_why)}"]
    known = replay.host_scale is not None
    bare = f", host work × {replay.host_scale:.3g} to meet the bare step" if known else "; no bare step: only ranges"
    bare = f"; {terminal(replay.bounds_why)}" if replay.bounds_why else bare
    assumed = [f"assumed: {terminal(text)}" for text in replay.assumptions]
    of, meets = ("of a recorded step", "it") if info.steps.count else ("in all", "the trace")
    within = f"{abs(replay.misfit or 0.0):.1%}"
    source = f"savings: {of}, from a replay that meets {meets} within {within}{bare}"
    return [source, *assumed, *map(_asked, replay.asked)]


def _asked(asked: Asked) -> str:
    """``two more workers: saves 1.2 ms a step (0.9 to 1.4 ms)``."""
    low, high, likely = asked.saving_low_ms_per_step, asked.saving_high_ms_per_step, asked.saving_ms_per_step
    bounds = between(low, high) if low is not None and high is not None else "unknown"
    saves = f"{milliseconds(likely)} a step ({bounds})" if likely is not None else f"{bounds} a step"
    return f"{terminal(asked.question)}: saves {saves}"


def _findings(findings: Iterable[Finding], report: Report, console: Console) -> None:
    for group in group_alike(findings):
        _finding(group, report, console)


def _finding(group: list[Finding], report: Report, console: Console) -> None:
    finding = group[0]
    heading = Text.assemble(
        (finding.severity, STYLES[finding.severity]), f" {terminal(finding.rule)} ", (terminal(finding.name), "bold")
    )
    heading.append(f" · {describe_cost(finding, report.traces)}")
    _line(console, heading, hang=INDENT)
    if finding.site is not None:
        place = _place(finding.site, finding.site.expression, "bold cyan")
        if finding.site_source == "stack":
            place.append(" (the line is that of the def)", style="dim")
        _line(console, place, INDENT, hang=INDENT)
    elif finding.op is not None or finding.annotation is not None:
        _line(console, Text(terminal(format_place(finding)), style="dim"), INDENT, hang=INDENT)
    if finding.exceeds:
        _line(console, Text(terminal(finding.exceeds), style="yellow"), INDENT, hang=INDENT)
    if finding.at is not None and _differs(finding.at, finding.site):
        _line(console, Text.assemble(("at ", "dim"), _place(finding.at, None, "")), INDENT, hang=INDENT)
    detail = [terminal(finding.op)] if finding.op else []
    detail += describe_source(finding)
    if finding.bytes is not None:
        detail.append(f"{size(finding.bytes)} in all")
    if len(report.traces) > 1:
        shown = label_by_number(report.traces)[finding.trace]
        several = f"{len(group)} of {len(report.traces)} traces, {shown} shown"
        detail.append(f"on {several if len(group) > 1 else shown}")
    if detail:
        _line(console, Text(" · ".join(detail), style="dim"), INDENT, hang=INDENT)
    _line(console, Text(terminal(finding.message)), INDENT)
    for causes in describe_causes(finding, report):
        _line(console, Text(terminal(causes)), INDENT, hang=INDENT)
    _line(console, Text.assemble(("fix: ", "green"), terminal(finding.fix)), INDENT, hang=5)
    console.print()


def _differs(at: Frame, site: Frame | None) -> bool:
    return site is None or (at.file, at.line, at.function) != (site.file, site.line, site.function)


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
        known = worst.setdefault((budget.outcome, budget.name), budget)
        if (budget.found or 0) > (known.found or 0):
            worst[budget.outcome, budget.name] = budget
    names = label_by_number(traces)
    for budget in worst.values():
        where = f" ({names[budget.trace]})" if len(traces) > 1 else ""
        text = Text.assemble((f"budget {budget.outcome} ", BUDGET_STYLES[budget.outcome]), f"{terminal(budget.name)}: ")
        _line(console, text.append(f"{terminal(budget.message)}{where}"), hang=INDENT)


def _not_checked(entries: Iterable[NotChecked], traces: Sequence[TraceInfo], console: Console) -> None:
    """Print the rules that could not be checked, or only in part, a line for each reason."""
    reasons: dict[str, dict[str, None]] = {}
    where: dict[str, dict[str, None]] = {}
    names = label_by_number(traces)
    partial: set[str] = set()
    for entry in entries:
        if entry.partial:
            partial.add(entry.why)
        reasons.setdefault(entry.why, {})[terminal(entry.rule)] = None
        where.setdefault(entry.why, {})[names[entry.trace]] = None
    for why, rules in reasons.items():
        on = f" (on {join_labels(where[why])})" if len(where[why]) < len(traces) else ""
        label = ("checked in part ", "dim") if why in partial else ("not checked ", "bold yellow")
        text = Text.assemble(label, f"{', '.join(sorted(rules))}: {terminal(why)}{on}")
        _line(console, text, hang=INDENT)
