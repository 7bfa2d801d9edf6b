"""The report as GitHub-flavoured markdown: a job's summary, a comment on a pull request.

Names stand in code spans, sentences have every sign escaped: nothing foreign is markup, a link or a mention.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from syncscope.report.card_phases import count_traces, name_other_phases
from syncscope.report.cards import Card, choose_findings, make_cards
from syncscope.report.compiling_phrases import describe_compiling
from syncscope.report.conclusion import conclude
from syncscope.report.escape import code, markdown
from syncscope.report.finding_phrases import describe_finding, describe_occurrences, format_location, format_place
from syncscope.report.impact import describe_impact
from syncscope.report.known_causes import describe_fixes
from syncscope.report.notable import notable
from syncscope.report.numbers import count, milliseconds
from syncscope.report.run_phrases import (
    describe_caveats,
    describe_recorded,
    describe_run,
    describe_share,
    describe_step,
    spell_waits,
)
from syncscope.report.runs import group_processes
from syncscope.report.trace_phrases import group_losses, group_warnings, join_labels, label_by_file
from syncscope.report.verdict_phrases import (
    describe_baseline,
    describe_changes,
    describe_stale,
    explain_how_to_allow,
    group_by_reason,
    summarize_report,
    summarize_verdict,
)
from syncscope.report.worth_phrases import describe_causes
from syncscope.schema.findings import Finding
from syncscope.schema.ranks import Unread
from syncscope.schema.report import NotChecked, Report, Stale
from syncscope.schema.run import Run
from syncscope.schema.verdict import Verdict

MOST_ROWS = 100
"""Findings shown; a job's summary may have 1 MiB in all."""

MOST_TRACES = 32
"""Traces shown."""

MOST_RUNS, MOST_PHASES = 4, 8
"""Runs shown, and phases of each."""


def render(report: Report, verdict: Verdict | None = None, *, top: int | None = None) -> str:
    """A headline, what to know first, a table of the findings that fail the gate (without a verdict, of the unexpected
    ones; of no more than ``top`` places), and the rest."""
    if verdict is None:
        findings: Sequence[Finding] = choose_findings(report)
        headline, not_checked = summarize_report(report), report.not_checked
    else:
        findings, not_checked = verdict.unexpected, verdict.not_checked
        headline = summarize_verdict(verdict, report)
    parts = [
        [f"### syncscope: {markdown(headline)}"],
        [*_losses(report), *_unread(report.unread)],
        ["<br>".join(f"**{label}** {markdown(said)}" for label, said in conclude(report, verdict).lines)],
        list(_runs(report)),
        list(_findings(findings, report, MOST_ROWS if top is None else min(top, MOST_ROWS))),
        [
            *_stale(report.stale),
            *_budgets(verdict),
            *_not_checked(not_checked),
            *_next(verdict),
        ],
        list(_traces(report)),
    ]
    return "\n\n".join("\n".join(lines) for lines in parts if lines) + "\n"


def _findings(findings: Sequence[Finding], report: Report, most: int) -> Iterator[str]:
    cards = make_cards(findings)
    if not cards:
        return
    yield "| impact | line | how often | what to do |"
    yield "|---|---|---|---|"
    for card in cards[:most]:
        yield f"| {' | '.join(_cells(card, report))} |"
    if len(cards) > most:
        yield f"\n… and {len(cards) - most} more"


def _cells(card: Card, report: Report) -> list[str]:
    finding, site = card.lead, card.lead.site
    before = "before " if finding.work_ends_at else ""
    place = (
        before + code(format_location(site)) if site else markdown(format_place(finding, report.traces[finding.trace]))
    )
    if site and site.expression:
        place += f"<br>{code(site.expression)}"
    if site and site.function:
        place += f"<br>in {code(site.function)}"
    often = markdown(describe_occurrences(finding, report.traces))
    if others := name_other_phases(card):
        often += f"<br>{markdown(others)}"
    if on := count_traces(card, report):
        often += f"<br>{on}"
    impact = describe_impact(finding, report.traces[finding.trace])
    amount = f"<br>{markdown(impact.amount)}" if impact.amount else ""
    tags = "".join(f"<br>**{markdown(rule)}** {markdown(name)}" for rule, name in card.tags)
    told = [*describe_finding(finding), *describe_causes(finding, report)]
    fix = describe_fixes(finding, report.traces[finding.trace])
    what = "<br>".join([*map(markdown, told), f"**Fix:** {markdown(fix)}"])
    return [f"{markdown(impact.words)}{amount}{tags}", place, often, what]


def _runs(report: Report) -> Iterator[str]:
    """What was counted, once a run, and the phases of the first one."""
    told = {process.run.id: process.run for process in reversed(group_processes(report.traces))}
    for run in list(reversed(told.values()))[:MOST_RUNS]:
        caveats = " ".join(["", *describe_caveats(run)])
        yield f"- the run: {markdown(describe_run(run) + caveats)}"
        order = sorted(range(len(run.phases)), key=lambda number: -run.phases[number].share)
        for number in order[:MOST_PHASES]:
            yield f"  - {_phase(run, number)}"
        for said in describe_compiling(run):
            yield f"  - {markdown(said)}"


def _phase(run: Run, number: int) -> str:
    phase = run.phases[number]
    facts = [f"{describe_share(phase.share)} of the time"]
    if phase.steps:
        facts.append(f"{count(phase.steps, 'step')} of {describe_step(phase.step_ms)[0]}")
    if waits := spell_waits(phase):
        facts.append(waits)
    if phase.recorded:
        steps = describe_recorded(run, number)
        facts.append("recorded" if steps == "yes" else f"steps {steps} recorded")
    where = f" {code(phase.where)}" if phase.where else ""
    return f"{code(phase.name)}{where}: {markdown(', '.join(facts))}"


def _next(verdict: Verdict | None) -> Iterator[str]:
    if verdict is not None:
        if baseline := describe_baseline(verdict):
            yield f"- {markdown(baseline)}"
        yield from (f"- {markdown(removed)}" for removed in describe_changes(verdict))
        if verdict.unexpected:
            yield f"- {markdown(explain_how_to_allow(verdict))}"


def _stale(entries: Iterable[Stale]) -> Iterator[str]:
    for entry in entries:
        yield f"- stale expectation {code(entry.where)}: {markdown(describe_stale(entry))}"


def _budgets(verdict: Verdict | None) -> Iterator[str]:
    for budget in verdict.budgets if verdict else ():
        yield f"- budget {budget.outcome}: {code(budget.title)}, {markdown(budget.message)}"


def _not_checked(entries: Iterable[NotChecked]) -> Iterator[str]:
    entries = [entry for entry in entries if not entry.needless]
    at_start = {entry.why for entry in entries if entry.rest}
    for (why, partial), rules in group_by_reason(entries).items():
        label = "checked in part" if partial or why in at_start else "not checked"
        yield f"- {label}: {markdown(', '.join(rules))}: {markdown(why)}"


def _unread(entries: Sequence[Unread]) -> Iterator[str]:
    for entry in entries[:MOST_TRACES]:
        yield f"- not read: {code(entry.path)}: {markdown(entry.why)}"
    if len(entries) > MOST_TRACES:
        yield f"- not read: {len(entries) - MOST_TRACES} more"


def _traces(report: Report) -> Iterator[str]:
    traces, shown = report.traces, notable(report, MOST_TRACES)
    yield "| trace | device | steps | step | waits | with a line |"
    yield "|---|---|--:|--:|--:|--:|"
    labels = label_by_file(traces)
    for info, label in ((traces[number], labels[number]) for number in shown):
        length = info.steps.bare_ms if info.steps.bare_ms is not None else info.steps.profiled_ms
        step = "–" if length is None else milliseconds(length)
        device = code(info.device) if info.device else "unknown"
        waits = info.coverage.waits if "runtime" in info.has else "–"
        yield f"| {code(label)} | {device} | {info.steps.count} | {step} | {waits} | {info.coverage.with_line} |"
    if len(shown) < len(traces):
        yield f"\n… and {len(traces) - len(shown)} more"
    for text, having in group_warnings(report):
        yield f"\nwarning{_at(having)}: {markdown(text)}"


def _losses(report: Report) -> Iterator[str]:
    for text, having in group_losses(report):
        yield f"- not all was seen{_at(having)}: {markdown(text)}"


def _at(labels: Sequence[str]) -> str:
    return f", {markdown(join_labels(labels))}" if labels else ""
