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
from syncscope.schema.findings import Finding, Frame, Site
from syncscope.schema.report import NotChecked, Report
from syncscope.schema.verdict import Verdict

SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"
ROOT = "SRCROOT"

NOTIFICATIONS = {
    "not-checked": "A rule could not look, or not everywhere.",
    "unread": "A trace could not be read.",
    "trace-warning": "Something to know about a trace: it was cut short, events were skipped, a window ended early.",
    "stale-expectation": "An expectation matches nothing and should be deleted.",
    "budget": "A budget was exceeded or could not be checked.",
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
        "version": terminal(report.tool.version) or "unknown",
        "rules": rules,
        "notifications": [{"id": name, "shortDescription": {"text": text}} for name, text in NOTIFICATIONS.items()],
    }
    run = {
        "tool": {"driver": driver},
        "originalUriBaseIds": {ROOT: {"description": {"text": "The root of the repository."}}},
        "columnKind": "unicodeCodePoints",
        "invocations": [_invocation(report, verdict, index, base)],
        "results": [_result(group, report, verdict, index, base) for group in group_alike(report.findings)],
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
    related = [("called from here", frame) for frame in finding.chain[:-1]]
    related += [("may still run when this is reached", frame) for frame in finding.earlier]
    if related:
        result["relatedLocations"] = [
            {"id": number, "message": {"text": text}, **_frame(frame, base)}
            for number, (text, frame) in enumerate(related, 1)
        ]
    if number := finding.count or finding.occurrences:  # SARIF takes no 0, which is none inside the steps
        result["occurrenceCount"] = number
    if finding.status != "unexpected":
        result["suppressions"] = [_suppression(finding)]
    return result


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


def _invocation(report: Report, verdict: Verdict | None, index: dict[str, int], base: str) -> dict[str, Any]:
    """How the analysis went. It failed where a trace could not be read, a gated rule could not be checked, or a budget
    could not be checked."""
    gated = verdict.not_checked if verdict else ()
    # What several traces say alike stands once.
    entries = {(entry.rule, entry.why, entry.partial): entry for entry in (*report.not_checked, *gated)}
    unseen = [_unseen(entry, index, entry in gated) for entry in entries.values()]
    warned = [_notice("trace-warning", "warning", text) for text, _ in (*group_losses(report), *group_warnings(report))]
    unread = [_notice("unread", "error", f"{entry.path}: {entry.why}") for entry in report.unread]
    budgets = (*verdict.exceeded, *verdict.unchecked_budgets) if verdict else ()
    over = [_notice("budget", "error", f"{budget.title}: {budget.message}") for budget in budgets]
    stale = [_notice("stale-expectation", "error", f"{one.where}: {describe_stale(one)}") for one in report.stale]
    return {
        "executionSuccessful": not verdict.blind if verdict else not report.unread,
        "toolExecutionNotifications": [*unread, *unseen, *warned, *over],
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
