"""What several outputs say of a finding: where it is, how often it occurs, what it costs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from syncscope.report.numbers import milliseconds, percent
from syncscope.report.run_phrases import describe_frequency, describe_source
from syncscope.report.worth_phrases import describe_saving, find_step_of_run
from syncscope.schema.findings import Finding, Frame
from syncscope.schema.report import TraceInfo


def group_alike(findings: Iterable[Finding]) -> list[list[Finding]]:
    """One group for the same place in the same phase on several traces, the heaviest first; two findings of one trace
    stay two."""
    groups: dict[tuple[object, ...], list[Finding]] = {}
    seen: Counter[tuple[object, ...]] = Counter()
    for finding in findings:
        key = (finding.rule, finding.fingerprint, finding.at, finding.phase)
        groups.setdefault((*key, seen[(*key, finding.trace)]), []).append(finding)
        seen[(*key, finding.trace)] += 1
    return list(groups.values())


def describe_cost(finding: Finding, traces: Sequence[TraceInfo]) -> str:
    """How often it occurs, how long it is blocked or exposed, and its saving: over the run where that is known, else
    in the recorded steps. Unknown figures are left out."""
    often, info = describe_frequency(finding, traces), traces[finding.trace]
    if often is not None:
        return " · ".join([often, *_cost_of_run(finding, info)])
    if finding.per_step == 0:
        return "outside the steps"
    if finding.per_step is None:
        prefix, number, stall = "in all: ", float(finding.count), finding.stall_ms
    else:
        prefix, number, stall = "a step: ", finding.per_step, finding.stall_ms_per_step
    facts = [] if finding.idle_ms_per_step is not None else [f"{number:.4g} ×"]  # bubbles and launches are no events
    for label, ms in (("blocked", stall), ("exposed", finding.exposed_ms_per_step), ("idle", finding.idle_ms_per_step)):
        if ms is not None:
            facts.append(f"{label} {milliseconds(ms)}")
    return prefix + " · ".join([*facts, *describe_saving(finding, info)])


def _cost_of_run(finding: Finding, info: TraceInfo) -> list[str]:
    """Amounts a step of the run, and those of the recorded steps that are not known over the run. What they are per is
    said after the last of each."""
    facts = []
    stall, saving = finding.run_stall_ms_per_step, finding.run_saving_ms_per_step
    turn = "a step" if finding.run_steps is not None else ""  # before the first phase there are no steps
    if stall is not None:
        facts.append((turn, f"blocked {milliseconds(stall)}"))
    if saving is not None:
        step_ms = find_step_of_run(finding, info)
        of = f" ({percent(saving, step_ms)})" if step_ms else ""
        facts.append((turn, f"worth {milliseconds(saving)}{of}"))
    if stall is None and finding.stall_ms_per_step is not None:
        facts.append(("a recorded step", f"blocked {milliseconds(finding.stall_ms_per_step)}"))
    for label, ms in (("exposed", finding.exposed_ms_per_step), ("idle", finding.idle_ms_per_step)):
        if ms is not None:
            facts.append(("a recorded step", f"{label} {milliseconds(ms)}"))
    if saving is None:
        facts += [("a recorded step", text) for text in describe_saving(finding, info)]
    following = [*(unit for unit, _ in facts), ""][1:]
    pairs = zip(facts, following, strict=True)
    return [text if unit in (after, "") else f"{text} {unit}" for (unit, text), after in pairs]


def format_place(finding: Finding) -> str:
    """The finding's line, else the annotation that it is in, as they stand in the report: not escaped."""
    if finding.site is not None:
        return format_location(finding.site)
    return f"in {finding.annotation}, line unknown" if finding.annotation else "line unknown"


def format_location(frame: Frame) -> str:
    """``train.py:21``, as it stands in the report: not escaped."""
    return frame.file if frame.line is None else f"{frame.file}:{frame.line}"


def describe_finding(finding: Finding) -> list[str]:
    """What happens at a finding's line, and what must be known of it; one sentence each, without what to do."""
    caveats = ["the line is that of the def"] if finding.site is not None and finding.site_source == "stack" else []
    return [finding.message, *([finding.exceeds] if finding.exceeds else []), *caveats, *describe_source(finding)]
