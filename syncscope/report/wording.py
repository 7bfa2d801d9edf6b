"""What several outputs say in the same words: counts, weights, places, and how a verdict ends."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from syncscope.compare.diff import Change, Diff, Kind
from syncscope.compare.occurrences import format_count
from syncscope.report.page import between, milliseconds
from syncscope.schema.findings import SEVERITIES, Finding, Frame
from syncscope.schema.report import NotChecked, Report, Stale, TraceInfo
from syncscope.schema.verdict import Verdict

MOST_RUNS = 4
"""Runs of ranks named in a sentence."""


def alike(findings: Iterable[Finding]) -> list[list[Finding]]:
    """The same place on several traces stands once, under the heaviest; two findings of one trace stay two."""
    groups: dict[tuple[object, ...], list[Finding]] = {}
    seen: Counter[tuple[object, ...]] = Counter()
    for finding in findings:
        key = (finding.rule, finding.fingerprint, finding.at)
        groups.setdefault((*key, seen[(*key, finding.trace)]), []).append(finding)
        seen[(*key, finding.trace)] += 1
    return list(groups.values())


def weights(finding: Finding) -> str:
    """How often, how long blocked or exposed, and what it is worth: a figure that is missing is left out."""
    if finding.per_step == 0:
        return "outside the steps"
    if finding.per_step is None:
        prefix, number, stall = "in all: ", float(finding.count), finding.stall_ms
    else:
        prefix, number, stall = "a step: ", finding.per_step, finding.stall_ms_per_step
    facts = [f"{number:.4g} ×"]
    for label, ms in (("blocked", stall), ("exposed", finding.exposed_ms_per_step)):
        if ms is not None:
            facts.append(f"{label} {milliseconds(ms)}")
    saving = worth(finding.saving_ms_per_step, finding.saving_low_ms_per_step, finding.saving_high_ms_per_step)
    return prefix + " · ".join([*facts, *saving])


def worth(ms: float | None, low: float | None, high: float | None) -> list[str]:
    """``worth 0.3 ms``, or its bounds where only they are known; nothing where neither is."""
    if ms is not None:
        return [f"worth {milliseconds(ms)}"]
    return [] if low is None or high is None else [f"worth {between(low, high)}"]


def where(frame: Frame | None) -> str:
    """``train.py:21``, as it stands in the report: not escaped."""
    if frame is None:
        return "line unknown"
    return frame.file if frame.line is None else f"{frame.file}:{frame.line}"


def said_of(finding: Finding) -> list[str]:
    """What happens at a finding's line, and what must be known of it; one sentence each, without what to do."""
    caveat = ["the line is that of the def"] if finding.site is not None and finding.site_source == "stack" else []
    return [finding.message, *([finding.exceeds] if finding.exceeds else []), *caveat]


def labels(traces: Sequence[TraceInfo]) -> list[str]:
    """Ranks where they tell the traces apart, else numbers."""
    ranks = [info.rank for info in traces]
    if None not in ranks and len(set(ranks)) == len(ranks):
        return [f"rank {rank}" for rank in ranks]
    return [f"#{number}" for number in range(1, len(traces) + 1)]


def several(names: Iterable[str]) -> str:
    """Labels of traces in a sentence: ``rank 3``, ``ranks 0–1022``, ``ranks 0–3, 8 and 17 more``."""
    listed = list(dict.fromkeys(names))
    kind = "rank " if all(name.startswith("rank ") for name in listed) else "#"
    runs: list[tuple[int, int]] = []
    for number in sorted(int(name.removeprefix(kind)) for name in listed):
        if runs and number == runs[-1][1] + 1:
            runs[-1] = runs[-1][0], number
        else:
            runs.append((number, number))
    shown = [str(first) if first == last else f"{first}–{last}" for first, last in runs[:MOST_RUNS]]
    more = sum(last - first + 1 for first, last in runs[MOST_RUNS:])
    told = ", ".join(shown) if kind == "rank " else ", ".join(f"#{one}" for one in shown)
    label = "" if kind == "#" else "rank " if len(listed) == 1 else "ranks "
    return f"{label}{told}" + (f" and {more} more" if more else "")


def same_warnings(traces: Sequence[TraceInfo]) -> list[tuple[str, list[str]]]:
    """Each warning once, with the labels of the traces that have it."""
    found: dict[str, list[str]] = {}
    for info, label in zip(traces, labels(traces), strict=True):
        for text in info.warnings:
            found.setdefault(text, []).append(label)
    return list(found.items())


def conclusion(verdict: Verdict, report: Report) -> str:
    """How a gate ended, in one line: ``failed: 1 unexpected finding · 20 in the baseline``."""
    against = [
        count(number, noun) + ending
        for number, noun, ending in (
            (len(alike(verdict.unexpected)), "unexpected finding", ""),
            (len(verdict.stale), "stale expectation", ""),
            (len({budget.name for budget in verdict.exceeded}), "budget", " exceeded"),
            (len({entry.rule for entry in verdict.not_checked}), "rule", " not checked"),
            (len({budget.name for budget in verdict.unchecked_budgets}), "budget", " not checked"),
            (len(verdict.unread), "trace", " not read"),
        )
        if number
    ]
    let_pass = [
        f"{number} {ending}"
        for number, ending in (
            (len(alike(verdict.within_budget)), "within the budget"),
            (_with_status(report, "expected"), "expected"),
            (_with_status(report, "baseline"), "in the baseline"),
        )
        if number
    ]
    first = f"failed: {', '.join(against)}" if against else f"passed: {', '.join(verdict.gate) or 'no rule is gated'}"
    return " · ".join([first, *let_pass])


def tally(report: Report) -> str:
    """What a report holds, in one line: ``3 findings: 1 error, 2 warnings · 1 expected``."""
    unexpected = [group[0] for group in alike(f for f in report.findings if f.status == "unexpected")]
    if unexpected:
        counts = [count(n, name) for name in SEVERITIES if (n := sum(f.severity == name for f in unexpected))]
        facts = [f"{count(len(unexpected), 'finding')}: {', '.join(counts)}"]
    else:
        facts = ["no findings"]
    for status, ending in (("expected", "expected"), ("baseline", "in the baseline")):
        if number := _with_status(report, status):
            facts.append(f"{number} {ending}")
    every = (report.saving_all_ms_per_step, report.saving_all_low_ms_per_step, report.saving_all_high_ms_per_step)
    facts += [f"all fixed together: {saving} a step" for saving in worth(*every)]
    if report.unread:
        facts.append(f"{count(len(report.unread), 'trace')} not read")
    return " · ".join(facts)


def _with_status(report: Report, status: str) -> int:
    return len(alike(finding for finding in report.findings if finding.status == status))


def stale_sentence(entry: Stale) -> str:
    """What is wrong with a stale expectation and what to do; not escaped."""
    reason = f' (it says "{entry.reason}")' if entry.reason else ""
    return f"{entry.rule} matches nothing; delete it{reason}"


def how_to_allow(verdict: Verdict) -> str:
    """What to write where a wait is meant; the rule is that of the first. Not escaped."""
    one = f"to let one pass: # syncscope: expect {verdict.unexpected[0].rule} -- reason, on its line"
    return one if verdict.baseline else f"{one}; to begin with all of them: --baseline FILE"


def ratchet(verdict: Verdict) -> str:
    """What became of the baseline, ``""`` where there is none or nothing to say. Not escaped."""
    baseline = verdict.baseline
    if baseline is None:
        return ""
    fixed = f"{count(baseline.fixed, 'entry', 'entries')} fixed"
    told = {
        "written": f" written: {count(baseline.covered, 'finding')} may stay, what is new fails; commit it",
        "tightened": f" tightened: {fixed}, {baseline.covered} left",
        "not written": " not touched" if verdict.unexpected else " not written: not every gated rule could be checked",
        "held": f": {fixed}" + ("" if verdict.unexpected else "; run with --update to tighten it")
        if baseline.fixed
        else "",
    }[baseline.outcome]
    return told and f"baseline {baseline.path}{told}"


def by_reason(entries: Iterable[NotChecked]) -> dict[tuple[str, bool], list[str]]:
    """The rules that could not look, or (``True``) not everywhere, for each reason."""
    reasons: dict[tuple[str, bool], list[str]] = {}
    for entry in entries:
        rules = reasons.setdefault((entry.why, entry.partial), [])
        if entry.rule not in rules:
            rules.append(entry.rule)
    return reasons


def count(number: int, noun: str, plural: str = "") -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {plural or noun + 's'}"


def size(number: int) -> str:
    """``12 B``, ``4 MiB``: three digits in the unit that suits."""
    value, unit = float(number), "B"
    for unit in ("B", "KiB", "MiB", "GiB", "TiB"):
        if value < 1000 or unit == "TiB":
            break
        value /= 1024
    return f"{value:.3g} {unit}"


def difference(diff: Diff) -> str:
    """What changed, in one line: ``1 new, 2 fixed, 17 the same``."""
    words: tuple[tuple[Kind, str], ...] = (
        ("new", "new"),
        ("more", "more often"),
        ("unclear", "unclear"),
        ("fewer", "less often"),
        ("fixed", "fixed"),
    )
    told = [f"{number} {word}" for kind, word in words if (number := len(diff.of(kind)))]
    return ", ".join([*(told or ["nothing changed"]), f"{diff.same} the same"])


def counted(change: Change) -> str:
    """How often a step: ``0 → 1 ×``."""
    before, after = ("?" if count is None else format_count(count) for count in (change.before, change.after))
    return f"{before} → {after} × a step"


def candidates(change: Change) -> str:
    """Which lines a new one among equal ones may be, ``""`` where there is only one."""
    return f"any of the lines {', '.join(map(str, change.lines))} may be the new one" if change.lines else ""


def step_time(diff: Diff) -> str:
    """``14.5 ms → 14.2 ms (-2.1 %), bare``, or that it is not known."""
    step = diff.step
    if step is None:
        return "not measured in the same way in both"
    share = f" ({100 * (step.after - step.before) / step.before:+.1f} %)" if step.before else ""
    how = "without a profiler" if step.measured == "bare" else "under the profiler"
    return f"{milliseconds(step.before)} → {milliseconds(step.after)}{share}, {how}"
