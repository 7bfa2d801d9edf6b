"""The report as SARIF 2.1.0, for code scanning and editors.

Paths are relative to the repository's root (``SRCROOT``). GitHub rejects a whole file for one result without an
artifact, so a finding in a library has its path as the report shows it, ``<site-packages>/…``, without a base, and one
without any line points at its trace; both say the function as a logical location and have the calls that led there as
related locations.
"""

from __future__ import annotations

from pathlib import PurePath
from typing import Any

import msgspec

from syncscope.report.escape import sarif, terminal
from syncscope.report.finding_phrases import describe_finding, group_alike
from syncscope.report.repository import as_uri, in_repository
from syncscope.report.run_phrases import describe_frequency
from syncscope.report.sarif_rules import descriptors
from syncscope.report.trace_phrases import group_losses, group_warnings
from syncscope.report.verdict_phrases import describe_stale
from syncscope.rules import BY_CODE
from syncscope.schema import address
from syncscope.schema.findings import Finding, Frame, Site
from syncscope.schema.report import NotChecked, Report
from syncscope.schema.verdict import Verdict

SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"
ROOT = "SRCROOT"

MOST_RESULTS = 5_000
"""What code scanning takes of a run; more than 25,000 and it rejects the file."""
MOST_RELATED = 100
"""What it shows of a result's locations; it rejects a result with more than 1,000. The innermost calls are kept."""

NOTIFICATIONS = {
    "not-checked": "A rule could not look, or not everywhere.",
    "unread": "A trace could not be read.",
    "trace-warning": "Something to know about a trace: it was cut short, events were skipped, a window ended early.",
    "stale-expectation": "An expectation matches nothing and should be deleted.",
    "budget": "A budget was exceeded or could not be checked.",
    "left-out": "There are more findings than code scanning takes.",
}
FIGURES = (
    "status", "op", "thread", "count", "per_step", "bytes", "stall_ms_per_step", "exposed_ms_per_step",
    "saving_ms_per_step", "saving_low_ms_per_step", "saving_high_ms_per_step", "saving_null_why",
    "likely_saving_ms_per_step", "saving_below_drift", "idle_ms_per_step",
    "phase", "run_per_step", "run_per_step_low", "run_per_step_high", "occurrences", "run_steps",
    "run_stall_ms_per_step", "run_saving_ms_per_step",
)  # fmt: skip
"""Fields of a finding that have no place of their own in SARIF."""


def render(report: Report, verdict: Verdict | None = None, *, base: str = "") -> str:
    """The log, one run. ``base`` is the project's folder in its repository, empty where they are the same."""
    rules = descriptors()
    index = {rule["id"]: number for number, rule in enumerate(rules)}
    driver = {
        "name": "syncscope",
        "version": _version(report.tool.version),
        "informationUri": address.HOME,
        "rules": rules,
        "notifications": [_notification(name, text) for name, text in NOTIFICATIONS.items()],
    }
    groups = group_alike(report.findings)
    run = {
        "tool": {"driver": driver},
        "originalUriBaseIds": {ROOT: {"description": {"text": "The root of the repository."}}},
        "columnKind": "unicodeCodePoints",
        "invocations": [_invocation(report, verdict, index, len(groups) - MOST_RESULTS)],
        "results": [_result(group, report, verdict, index, base) for group in groups[:MOST_RESULTS]],
    }
    log = {"$schema": SCHEMA, "version": "2.1.0", "runs": [run]}
    return msgspec.json.format(msgspec.json.encode(log), indent=2).decode() + "\n"


def _result(
    group: list[Finding], report: Report, verdict: Verdict | None, index: dict[str, int], base: str
) -> dict[str, Any]:
    finding = group[0]
    stands = verdict is not None and finding in verdict.unexpected
    often = describe_frequency(finding, report.traces)
    told = ["; ".join(describe_finding(finding)), *([often[0].upper() + often[1:]] if often else [])]
    sentence = " ".join(map(_sentence, told))
    result: dict[str, Any] = {
        **_rule(finding.rule, index),
        "level": "error" if stands else finding.severity,
        "message": {"text": sarif(f"{sentence} {finding.fix}")},
        "locations": [_location(finding, report, base)],
        "partialFingerprints": {"syncscope/v1": terminal(finding.fingerprint)},
        "properties": {name: _plain(getattr(finding, name)) for name in FIGURES},
    }
    result["properties"]["traces"] = [terminal(report.traces[one.trace].path) for one in group]
    related = [("called from here", frame) for frame in finding.chain[-MOST_RELATED:-1]]
    related += [("may still run when this is reached", frame) for frame in finding.earlier]
    if related:
        result["relatedLocations"] = [
            {"id": number, "message": {"text": text}, **_frame(frame, base)}
            for number, (text, frame) in enumerate(related, 1)
        ]
    if fix := _fix(finding, base):
        result["fixes"] = [fix]
    if number := finding.count or finding.occurrences:  # SARIF takes no 0, which is none inside the steps
        result["occurrenceCount"] = number
    if finding.status != "unexpected":
        result["suppressions"] = [_suppression(finding)]
    return result


def _fix(finding: Finding, base: str) -> dict[str, Any] | None:
    """The change of a line, where it is certain what to change and where: the expression is known with its columns, and
    its file is one of the repository."""
    site, rule = finding.site, BY_CODE.get(finding.rule)
    if site is None or rule is None or site.line is None or site.column is None or finding.site_source != "hook":
        return None
    after, path = rule.rewrite(finding.fix, site.expression), in_repository(terminal(site.file), base)
    # An expression that was shortened, or had its spaces changed, is not what stands in the file.
    exact = site.expression is not None and site.end_column == site.column + len(site.expression)
    if after is None or path is None or not exact or terminal(after) != after:
        return None
    change = {"deletedRegion": _region(site), "insertedContent": {"text": after}}
    artifact = {"uri": as_uri(path), "uriBaseId": ROOT}
    return {
        "description": {"text": sarif(finding.fix)},
        "artifactChanges": [{"artifactLocation": artifact, "replacements": [change]}],
    }


def _notification(name: str, text: str) -> dict[str, Any]:
    """A notification's descriptor. Code scanning wants of it what it wants of a rule."""
    return {"id": name, **{key: {"text": text} for key in ("shortDescription", "fullDescription", "help")}}


def _version(given: str) -> str:
    """The version, which has to begin with a number so that it can be compared; ``0`` for one that does not."""
    version = terminal(given)
    return version if version[:1].isdigit() and version.isascii() else "0"


def _rule(code: str, index: dict[str, int]) -> dict[str, Any]:
    return {"ruleId": terminal(code)} | ({"ruleIndex": index[code]} if code in index else {})


def _sentence(text: str) -> str:
    return text if text.endswith((".", "!", "?")) else f"{text}."


def _plain(value: Any) -> Any:
    return terminal(value) if isinstance(value, str) else value


def _suppression(finding: Finding) -> dict[str, Any]:
    reason = finding.reason or ("in the baseline" if finding.status == "baseline" else None)
    return {"kind": "external", "status": "accepted"} | ({"justification": terminal(reason)} if reason else {})


def _location(finding: Finding, report: Report, base: str) -> dict[str, Any]:
    if finding.site is not None:
        return _frame(finding.site, base)
    trace = as_uri(terminal(PurePath(report.traces[finding.trace].path).name) or "trace")
    # GitHub wants a line of every location.
    location: dict[str, Any] = {"physicalLocation": {"artifactLocation": {"uri": trace}, "region": {"startLine": 1}}}
    if finding.annotation:
        location["logicalLocations"] = [{"fullyQualifiedName": terminal(finding.annotation), "kind": "function"}]
    return location


def _frame(frame: Frame, base: str) -> dict[str, Any]:
    """Where a frame is: its file and line, and the function by name."""
    path = in_repository(terminal(frame.file), base)
    artifact = {"uri": as_uri(path), "uriBaseId": ROOT} if path else {"uri": as_uri(terminal(frame.file)) or "unknown"}
    location: dict[str, Any] = {"physicalLocation": {"artifactLocation": artifact, "region": _region(frame)}}
    if function := terminal(frame.function):
        location["logicalLocations"] = [{"fullyQualifiedName": function, "kind": "function"}]
    return location


def _region(frame: Frame) -> dict[str, Any]:
    region: dict[str, Any] = {"startLine": max(frame.line or 1, 1)}
    if isinstance(frame, Site) and frame.column is not None:
        region["startColumn"] = max(frame.column, 1)
        if frame.end_column is not None and frame.end_column >= region["startColumn"]:
            region |= {"endLine": region["startLine"], "endColumn": frame.end_column}
    return region


def _invocation(report: Report, verdict: Verdict | None, index: dict[str, int], left_out: int) -> dict[str, Any]:
    """How the analysis went. It failed where a trace could not be read, a gated rule could not be checked, or a budget
    could not be checked. ``left_out`` results were too many for the file."""
    gated = verdict.not_checked if verdict else ()
    # What several traces say alike stands once.
    entries = {(entry.rule, entry.why, entry.partial): entry for entry in (*report.not_checked, *gated)}
    unseen = [_unseen(entry, index, entry in gated) for entry in entries.values()]
    warned = [_notice("trace-warning", "warning", text) for text, _ in (*group_losses(report), *group_warnings(report))]
    differs = verdict.baseline.differs if verdict and verdict.baseline else ()
    warned += [
        _notice("trace-warning", "warning", f"Not what the baseline was written from: {text}") for text in differs
    ]
    unread = [_notice("unread", "error", f"{entry.path}: {entry.why}") for entry in report.unread]
    budgets = (*verdict.exceeded, *verdict.unchecked_budgets) if verdict else ()
    over = [_notice("budget", "error", f"{budget.title}: {budget.message}") for budget in budgets]
    many = f"{left_out:,} more findings are not in this file, which holds the first {MOST_RESULTS:,}"
    more = [_notice("left-out", "warning", many)] if left_out > 0 else []
    stale = [_notice("stale-expectation", "error", f"{one.where}: {describe_stale(one)}") for one in report.stale]
    return {
        "executionSuccessful": not verdict.blind if verdict else not report.unread,
        "toolExecutionNotifications": [*unread, *unseen, *warned, *over, *more],
        "toolConfigurationNotifications": stale,
    }


def _unseen(entry: NotChecked, index: dict[str, int], gated: bool) -> dict[str, Any]:
    level = "error" if gated else "note" if entry.partial else "warning"
    label = "checked in part" if entry.partial else "not checked"
    rule = {"id": terminal(entry.rule)} | ({"index": index[entry.rule]} if entry.rule in index else {})
    return _notice("not-checked", level, f"{entry.rule} {label}: {entry.why}") | {"associatedRule": rule}


def _notice(name: str, level: str, text: str) -> dict[str, Any]:
    number = list(NOTIFICATIONS).index(name)
    return {"descriptor": {"id": name, "index": number}, "level": level, "message": {"text": sarif(text)}}
