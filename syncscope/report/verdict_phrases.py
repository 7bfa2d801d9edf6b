"""What several outputs say of a whole report: what it holds, how a gate ended, and what to do next."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from syncscope.report.cards import choose_findings, count_saving, make_cards
from syncscope.report.finding_phrases import group_alike
from syncscope.report.joint import explain_sum
from syncscope.report.numbers import count
from syncscope.report.worth_phrases import describe_all
from syncscope.schema.findings import Finding
from syncscope.schema.report import NotChecked, Report, Stale
from syncscope.schema.verdict import Verdict


def summarize_report(report: Report) -> str:
    """What a report holds, in one line: ``3 findings at 2 places · 1 expected``."""
    found = choose_findings(report)
    number, places = len(group_alike(found)), len(make_cards(found))
    facts = [count(number, "finding") if number else "no findings"]
    if places < number:
        facts[0] += f" at {count(places, 'place')}"
    every = "all"
    if 1 < (known := count_saving(found)) < places:
        facts[0] += f", {known} of them known to save something"
        every = f"these {known}"
    if summing := _summing_up(report, found):
        facts.append(f"{summing} more that only {'sums' if summing == 1 else 'sum'} up others")
    for status, ending in (("expected", "expected"), ("baseline", "in the baseline")):
        if number := _with_status(report, status):
            facts.append(f"{number} {ending}")
    step = "a recorded step" if all(info.steps.count for info in report.traces) else "in all"
    if places > 1:
        joint = explain_sum(report)
        more = f"; {joint}" if joint else ""
        facts += [f"{every} fixed together: {saving}{more}" for saving in describe_all(report, step)]
    if report.unread:
        facts.append(f"{count(len(report.unread), 'trace')} not read")
    return " · ".join(facts)


def _summing_up(report: Report, shown: Sequence[Finding]) -> int:
    """How many of a report's unexpected findings are not shown, since others that are say the same."""
    unexpected = [finding for finding in report.findings if finding.status == "unexpected"]
    return len(group_alike(unexpected)) - len(group_alike(shown))


def summarize_verdict(verdict: Verdict, report: Report) -> str:
    """How a gate ended, in one line: ``failed: 1 unexpected finding · 20 in the baseline``."""
    against = [
        count(number, noun) + ending
        for number, noun, ending in (
            (len(group_alike(verdict.unexpected)), "unexpected finding", ""),
            (len(verdict.stale), "stale expectation", ""),
            (len({budget.title for budget in verdict.exceeded}), "budget", " exceeded"),
            (len({entry.rule for entry in verdict.not_checked}), "rule", " not checked"),
            (len({budget.title for budget in verdict.unchecked_budgets}), "budget", " not checked"),
            (0 if verdict.allow_partial else len(verdict.unread), "trace", " not read"),
        )
        if number
    ]
    let_pass = [
        f"{number} {ending}"
        for number, ending in (
            (len(group_alike(verdict.within_budget)), "within the budget"),
            (_with_status(report, "expected"), "expected"),
            (_with_status(report, "baseline"), "in the baseline"),
            (len(verdict.unread) if verdict.allow_partial else 0, "not read"),
        )
        if number
    ]
    first = f"failed: {', '.join(against)}" if against else f"passed: {', '.join(verdict.gate) or 'no rule is gated'}"
    return " · ".join([first, *let_pass])


def _with_status(report: Report, status: str) -> int:
    return len(group_alike(finding for finding in report.findings if finding.status == status))


def describe_stale(entry: Stale) -> str:
    """What is wrong with a stale expectation and what to do; not escaped."""
    reason = f' (it says "{entry.reason}")' if entry.reason else ""
    return f"{entry.rule} matches nothing; delete it{reason}"


def explain_how_to_allow(verdict: Verdict) -> str:
    """What to write where a wait is intended, with the rule of a finding as the example: a comment where a line was
    recorded, since only there it is read, else the configuration. Not escaped."""
    recorded = next((one for one in verdict.unexpected if one.site and one.site_source in ("hook", "count")), None)
    rule = (recorded or verdict.unexpected[0]).rule
    comment = f"on its line, # syncscope: expect {rule} -- reason"
    entry = f'in syncscope.toml, [[expect]] with rule = "{rule}" and a reason'
    one = f"to accept one: {comment if recorded else entry}"
    return one if verdict.baseline else f"{one}; to accept all that is there now: --baseline FILE --write-baseline"


def describe_baseline(verdict: Verdict) -> str:
    """What became of the baseline, ``""`` where there is none or nothing to say. Not escaped."""
    baseline = verdict.baseline
    if baseline is None:
        return ""
    fixed = f"{count(baseline.fixed, 'entry', 'entries')} fixed"
    outcome = {
        "written": f" written: {count(baseline.covered, 'finding')} may stay, new ones fail; commit this file",
        "tightened": f" tightened: {fixed}, {baseline.covered} left",
        "not written": " not touched" if verdict.unexpected else " not written: not every gated rule could be checked",
        "held": f": {fixed}" + ("" if verdict.unexpected else "; run with --update to tighten it")
        if baseline.fixed
        else "",
    }[baseline.outcome]
    return outcome and f"baseline {baseline.path}{outcome}"


def describe_changes(verdict: Verdict) -> list[str]:
    """How the recordings differ from those of the baseline, and what was taken out of it or lowered in it. Not
    escaped."""
    if verdict.baseline is None:
        return []
    of = f"not what baseline {verdict.baseline.path} was written from"
    differs = [f"{of}: {phrase}" for phrase in verdict.baseline.differs]
    return differs + [f"no longer in the baseline: {entry}" for entry in verdict.baseline.removed]


def group_by_reason(entries: Iterable[NotChecked]) -> dict[tuple[str, bool], list[str]]:
    """The rules that could not be checked, by the reason and whether they could be checked in part."""
    reasons: dict[tuple[str, bool], list[str]] = {}
    for entry in entries:
        rules = reasons.setdefault((entry.why, entry.partial), [])
        if entry.rule not in rules:
            rules.append(entry.rule)
    return reasons


def join_codes(codes: Sequence[str]) -> str:
    """Codes of rules in their order, three and more that follow each other as one: ``CMP701–CMP704, DST601``."""
    runs: list[list[str]] = []
    for code in codes:
        follows = runs and code[:3] == runs[-1][-1][:3] and _number(code) == _number(runs[-1][-1]) + 1
        if follows and _number(code) > 0:
            runs[-1].append(code)
        else:
            runs.append([code])
    return ", ".join(f"{run[0]}–{run[-1]}" if len(run) > 2 else ", ".join(run) for run in runs)


def _number(code: str) -> int:
    """The number in a rule's code, −1 where it is none."""
    return int(code[3:]) if code[3:].isascii() and code[3:].isdigit() else -1
