"""SARIF: valid by the schema, whole by GitHub's rules, and each finding where it belongs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jsonschema
import msgspec
import pytest

from fixtures.labels import CASES, report_of
from syncscope.analysis.merge import merge
from syncscope.policy import Policy, check_gate
from syncscope.report.sarif import NOTIFICATIONS, render
from syncscope.report.sarif_rules import as_markdown, descriptors
from syncscope.rules import RULES
from syncscope.schema.findings import SEVERITIES, Finding, Frame, Site
from syncscope.schema.report import NotChecked, Report
from syncscope.schema.verdict import Budget, Verdict
from tests.report import sample
from tests.report.hostile import HOSTILE, spoiled, spoiled_verdict

HERE = Path(__file__).parent
SCHEMA = json.loads((HERE / "schemas" / "sarif-2.1.0-rtm.5.json").read_text(encoding="utf-8"))


def run_of(report: Report, verdict: Verdict | None = None, **how: Any) -> dict[str, Any]:
    """The one run, after a look at the whole log."""
    log = json.loads(render(report, verdict, **how))
    jsonschema.Draft4Validator(SCHEMA).validate(log)
    meets_githubs_rules(log)
    (run,) = log["runs"]
    return dict(run)


def meets_githubs_rules(log: dict[str, Any]) -> None:
    """What code scanning asks for beyond the schema: it rejects the file otherwise."""
    assert log["$schema"] and log["version"] == "2.1.0"
    for run in log["runs"]:
        driver = run["tool"]["driver"]
        assert driver["name"] and driver["version"]
        for rule in driver["rules"]:
            assert rule["id"] and rule["help"]["text"] and len(rule["name"]) <= 255
            assert 0 < len(rule["shortDescription"]["text"]) <= 1024
            assert 0 < len(rule["fullDescription"]["text"]) <= 1024
            assert len(rule["properties"]["tags"]) <= 20
        for result in run["results"]:
            assert result["message"]["text"] and result["partialFingerprints"]
            assert len(result["locations"]) == 1
            for location in (*result["locations"], *result.get("relatedLocations", ())):
                assert location["physicalLocation"]["artifactLocation"]["uri"]
                assert location["physicalLocation"]["region"]["startLine"] >= 1
        for invocation in run["invocations"]:
            for notice in invocation["toolExecutionNotifications"]:
                assert notice["descriptor"]["id"] == list(NOTIFICATIONS)[notice["descriptor"]["index"]]


def result_of(finding: Finding, verdict: Verdict | None = None, **how: Any) -> dict[str, Any]:
    (result,) = run_of(sample.report(found=[finding]), verdict, **how)["results"]
    return dict(result)


def scalar_read(**changed: Any) -> Finding:
    return msgspec.structs.replace(sample.findings()[0], **changed)


@pytest.mark.parametrize("case", CASES)
def test_real_traces_are_valid(case: str) -> None:
    report = report_of(case, "windows")
    run = run_of(report, check_gate(report, Policy()))
    assert sum(len(result["properties"]["traces"]) for result in run["results"]) == len(report.findings)


@pytest.mark.parametrize("name", HOSTILE.values(), ids=HOSTILE)
def test_hostile_names_leave_it_valid(name: str) -> None:
    if name:
        run_of(spoiled(sample.report(), name), spoiled_verdict(sample.report(), name))


def test_a_result_points_at_its_rule_line_and_columns() -> None:
    site = Site(file="a b/train.py", line=7, function="Loop.step", expression="loss.item()", column=5, end_column=16)
    run = run_of(sample.report(found=[scalar_read(site=site)]))
    (result,) = run["results"]
    assert run["tool"]["driver"]["rules"][result["ruleIndex"]]["id"] == result["ruleId"] == "SYN102"
    (location,) = result["locations"]
    assert location["physicalLocation"] == {
        "artifactLocation": {"uri": "a%20b/train.py", "uriBaseId": "SRCROOT"},
        "region": {"startLine": 7, "startColumn": 5, "endLine": 7, "endColumn": 16},
    }
    assert location["logicalLocations"] == [{"fullyQualifiedName": "Loop.step", "kind": "function"}]
    assert result["partialFingerprints"] == {"syncscope/v1": scalar_read().fingerprint}
    assert result["properties"]["stall_ms_per_step"] == 1.63
    assert result["properties"]["exposed_ms_per_step"] is None


def test_the_calls_that_led_there_are_related_outermost_first() -> None:
    related = result_of(scalar_read())["relatedLocations"]
    places = [location["physicalLocation"]["artifactLocation"] for location in related]
    assert [place["uri"] for place in places] == ["train.py", "train.py"]
    assert [location["physicalLocation"]["region"]["startLine"] for location in related] == [90, 42]


@pytest.mark.parametrize(
    ("file", "uri"),
    [
        ("<site-packages>/lib/metrics.py", "%3Csite-packages%3E/lib/metrics.py"),
        ("<python>/threading.py", "%3Cpython%3E/threading.py"),
        ("/home/me/train.py", "home/me/train.py"),
        ("//evil.example/x.py", "evil.example/x.py"),
        ("../other/train.py", "other/train.py"),
        ("a/../../../etc/passwd", "a/etc/passwd"),
        ("..\\..\\x.py", "x.py"),
        ("a\\..\\x.py", "a/x.py"),
        ("https://evil.example/x.py", "evil.example/x.py"),
        ("file:///etc/passwd", "etc/passwd"),
        ("/file:///etc/passwd", "etc/passwd"),
        ("FILE:C:\\x.py", "x.py"),
        ("C:\\Users\\me\\train.py", "Users/me/train.py"),
        ("javascript:alert(1)", "alert%281%29"),
        ("..", "unknown"),
        ("file:///", "unknown"),
    ],
)
def test_a_file_that_is_not_the_projects_has_no_base(file: str, uri: str) -> None:
    site = Site(file=file, line=88, function="Meter.update")
    (location,) = result_of(scalar_read(site=site))["locations"]
    assert location["physicalLocation"]["artifactLocation"] == {"uri": uri}
    assert location["logicalLocations"][0]["fullyQualifiedName"] == "Meter.update"


def test_paths_are_those_of_the_repository() -> None:
    (location,) = result_of(scalar_read(), base="services/training")["locations"]
    assert location["physicalLocation"]["artifactLocation"]["uri"] == "services/training/train.py"


def test_a_finding_without_a_line_points_at_its_trace() -> None:
    (location,) = result_of(scalar_read(site=None, at=None, chain=()))["locations"]
    assert location["physicalLocation"]["artifactLocation"] == {"uri": "trace.json.gz"}


def test_what_stands_against_the_gate_is_an_error_whatever_its_severity() -> None:
    note = scalar_read(severity="note", message="It waits", exceeds="baseline 1, now 2")
    assert result_of(note)["level"] == "note"
    result = result_of(note, Verdict(gate=("SYN102",), unexpected=(note,)))
    assert result["level"] == "error"
    assert result["message"]["text"].startswith("It waits; baseline 1, now 2. Keep the value")
    assert [result_of(scalar_read(severity=severity))["level"] for severity in SEVERITIES] == list(SEVERITIES)


def test_expected_and_baseline_findings_are_suppressed_with_the_reason() -> None:
    assert "suppressions" not in result_of(scalar_read())
    (why,) = result_of(scalar_read(status="expected", reason="epoch metrics"))["suppressions"]
    assert (why["status"], why["justification"]) == ("accepted", "epoch metrics")
    (why,) = result_of(scalar_read(status="baseline"))["suppressions"]
    assert why["justification"] == "in the baseline"


def test_the_same_line_on_several_ranks_is_one_result() -> None:
    reports = [
        sample.report([sample.trace_info(f"run/rank{rank}.json", rank)], sample.findings(rank)) for rank in (0, 1)
    ]
    run = run_of(merge(reports))
    assert len(run["results"]) == len(sample.findings())
    assert run["results"][0]["properties"]["traces"] == ["run/rank0.json", "run/rank1.json"]


def test_what_could_not_be_looked_at_is_notified_and_makes_the_run_unsuccessful() -> None:
    unseen = NotChecked(rule="SYN102", why="no runtime calls")
    part = NotChecked(rule="OVL301", why="only copies of pinned memory", partial=True)
    report = msgspec.structs.replace(sample.report(), not_checked=(unseen, unseen, part))
    invocation = run_of(report)["invocations"][0]
    said = [(entry["level"], entry["message"]["text"]) for entry in invocation["toolExecutionNotifications"]]
    assert said[:2] == [
        ("warning", "SYN102 not checked: no runtime calls"),
        ("note", "OVL301 checked in part: only copies of pinned memory"),
    ]
    assert said[2][1].startswith("The file was cut short")
    assert invocation["executionSuccessful"]
    assert invocation["toolConfigurationNotifications"][0]["message"]["text"].startswith("pyproject.toml:41: SYN103")
    blind = run_of(report, Verdict(gate=("SYN102",), not_checked=(unseen,)))["invocations"][0]
    assert not blind["executionSuccessful"]
    assert blind["toolExecutionNotifications"][0]["level"] == "error"


def test_a_budget_exceeded_is_notified() -> None:
    budget = Budget(name="max_stall_share", allowed=0.1, found=0.4, outcome="exceeded", message="40 % of 10 %")
    (notice, *_) = reversed(
        run_of(sample.report(), Verdict(gate=(), budgets=(budget,)))["invocations"][0]["toolExecutionNotifications"]
    )
    assert (notice["level"], notice["message"]["text"]) == ("error", "max_stall_share: 40 % of 10 %")


def test_the_other_lines_of_a_race_are_related() -> None:
    earlier = Site(file="data.py", line=3, function="f", expression="x.to(d, non_blocking=True)", column=9)
    (*_, last) = result_of(scalar_read(earlier=(earlier,)))["relatedLocations"]
    assert last["message"]["text"] == "may still run when this is reached"
    assert last["physicalLocation"]["region"] == {"startLine": 3, "startColumn": 9}


def test_the_line_of_a_def_is_said_to_be_one() -> None:
    stack = scalar_read(site_source="stack", message="It waits")
    assert result_of(stack)["message"]["text"].startswith("It waits; the line is that of the def. Keep the value")


def test_an_unknown_rule_and_a_frame_without_a_line_are_no_error() -> None:
    chain = (
        Frame(file="a.py", line=None, function=""),
        Frame(file="", line=3, function="f"),
        sample.findings()[0].chain[0],
    )
    result = result_of(scalar_read(rule="XYZ999", chain=chain))
    assert "ruleIndex" not in result
    assert result["ruleId"] == "XYZ999"


@pytest.mark.parametrize("rule", descriptors(), ids=lambda rule: rule["id"])
def test_the_help_of_a_rule_is_its_docstring(rule: dict[str, Any]) -> None:
    assert rule["helpUri"].startswith("https://")
    assert rule["help"]["text"] == next(known.doc for known in RULES if known.code == rule["id"])
    assert "**Why it costs:** " in rule["help"]["markdown"]
    assert rule["help"]["markdown"].count("```") == 6
    assert "costs" not in rule["fullDescription"]["text"][:20] and len(rule["fullDescription"]["text"]) > 150


def test_examples_become_blocks_of_code() -> None:
    doc = "It waits.\n\nBad:\n    a = 1\n\nGood:\n    if a:\n        b\n\nFine:\n    c\n\nMore of it."
    assert as_markdown(doc) == (
        "It waits.\n\n**Bad**\n\n```python\na = 1\n```\n\n**Good**\n\n```python\nif a:\n    b\n```\n\n"
        "**Fine**\n\n```python\nc\n```\n\nMore of it.\n"
    )
