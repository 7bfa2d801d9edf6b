"""``syncscope check`` on saved reports: the same verdict as on their traces, by the configuration of today."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import Run
from tests.runs import document_of, with_run, write

EXPECTED = 'expect = [\n  { rule = "SYN102", reason = "logs" },\n]\n'


@pytest.fixture
def saved(run: Run, folder: Path) -> Path:
    """The report of a trace that waits once a step."""
    assert run("analyze", "waiting.json.gz", "-o", "report.json").code == 0
    return folder / "report.json"


def change(path: Path, **values: Any) -> None:
    path.write_text(json.dumps({**json.loads(path.read_text()), **values}))


@pytest.mark.parametrize("trace", ["waiting.json.gz", "clean.json"])
@pytest.mark.parametrize("options", [(), ("--select", "SYN101"), ("--format", "json"), ("--format", "github")])
def test_a_report_has_the_verdict_of_its_trace(run: Run, trace: str, options: tuple[str, ...]) -> None:
    run("analyze", trace, "-o", "report.json")
    of_trace, of_report = run("check", trace, *options), run("check", "report.json", *options)
    assert (of_report.code, of_report.out) == (of_trace.code, of_trace.out)


def test_a_counted_run_has_the_verdict_of_its_trace(run: Run, folder: Path) -> None:
    write(folder / "counted.json.gz", with_run(document_of("item_logging"), every=10))
    run("analyze", "counted.json.gz", "-o", "report.json")
    assert run("check", "report.json").code == run("check", "counted.json.gz").code == 1


def test_the_expectations_of_today_hold_and_not_those_of_then(run: Run, folder: Path, saved: Path) -> None:
    configuration = folder / "syncscope.toml"
    configuration.write_text(EXPECTED)
    assert run("check", "report.json").code == 0
    run("analyze", "waiting.json.gz", "-o", "expected.json")
    configuration.unlink()
    assert '"status": "expected"' in (folder / "expected.json").read_text()
    assert run("check", "expected.json").code == 1
    configuration.write_text(EXPECTED.replace("SYN102", "SYN103"))
    done = run("check", "report.json")
    assert done.code == 1 and "stale expectation" in done.out


def test_what_a_baseline_let_pass_does_not_pass_without_it(run: Run, folder: Path, saved: Path) -> None:
    baseline = ("--baseline", "known.json")
    assert run("check", "report.json", *baseline, "--write-baseline").code == 0
    assert run("check", "waiting.json.gz", *baseline, "-o", "passed.json").code == 0
    assert run("check", "passed.json", *baseline).code == 0
    assert run("check", "passed.json").code == 1


def test_what_the_program_expects_of_itself_stays_expected(run: Run, folder: Path, saved: Path) -> None:
    findings = json.loads(saved.read_text())["findings"]
    change(saved, findings=[{**finding, "status": "expected", "reason": "in the program"} for finding in findings])
    assert run("check", "report.json").code == 0


def test_a_rule_that_the_report_left_out_is_not_checked(run: Run, saved: Path) -> None:
    run("analyze", "clean.json", "--ignore", "SYN103", "-o", "report.json")
    done = run("check", "report.json")
    assert done.code == 3 and "not checked SYN103: the report was made without this rule" in done.out
    assert run("check", "report.json", "--select", "SYN102").code == 0


def test_a_report_that_does_not_say_its_rules_is_not_clean(run: Run, saved: Path) -> None:
    change(saved, rules=None, findings=[])
    done = run("check", "report.json")
    assert done.code == 3 and "analyze them again" in done.out


def test_reports_and_traces_are_judged_together(run: Run, folder: Path) -> None:
    run("analyze", "clean.json", "-o", "report.json")
    assert run("check", "report.json", "clean.json").code == 0
    assert run("check", "report.json", "waiting.json.gz").code == 1
    (folder / "syncscope.toml").write_text(EXPECTED)
    assert run("check", "report.json", "waiting.json.gz").code == 0


@pytest.mark.parametrize(
    "values", [{"traces": [], "findings": []}, {"traces": []}, {"findings": "none"}, {"schema_version": 99}], ids=str
)
def test_a_report_that_is_broken_or_empty_never_passes(run: Run, saved: Path, values: dict[str, Any]) -> None:
    change(saved, **values)
    assert run("check", "report.json").code == 3


READERS = (
    ("check", "report.json"),
    ("report", "report.json", "-o", "page.html"),
    ("diff", "report.json", "clean.json"),
    ("diff", "clean.json", "report.json", "-o", "page.html"),
)


def test_a_finding_of_a_trace_that_is_not_there_is_an_error(run: Run, saved: Path) -> None:
    finding = json.loads(saved.read_text())["findings"][0]
    change(saved, findings=[{**finding, "trace": 7}])
    said = f"error: report.json: not a report: {finding['rule']} is of trace 7, and there are 1\n"
    for arguments in READERS:
        done = run(*arguments)
        assert (done.code, done.err) == (3, said)


def test_a_report_of_no_trace_is_an_error(run: Run, saved: Path) -> None:
    change(saved, traces=[], findings=[])
    for arguments in READERS:
        done = run(*arguments)
        assert (done.code, done.err) == (3, "error: report.json: not a report: it is of no trace\n")


def test_no_output_overwrites_the_report(run: Run, saved: Path) -> None:
    before = saved.read_bytes()
    assert run("check", "report.json", "-o", "report.json").code == 2
    assert saved.read_bytes() == before


def test_a_page_of_a_report_shows_its_trace(run: Run, folder: Path, saved: Path) -> None:
    assert run("check", "report.json", "-o", "page.html").code == 1
    assert "loss.item()" in (folder / "page.html").read_text(encoding="utf-8")


def test_a_fault_of_the_configuration_is_not_one_of_the_report(run: Run, folder: Path, saved: Path) -> None:
    document = json.loads(saved.read_text())
    source = folder / document["findings"][0]["site"]["file"]
    source.parent.mkdir(parents=True, exist_ok=True)
    source.write_text("loss.item()  # syncscope: ignore SYN102\n")
    done = run("check", "report.json")
    assert done.code == run("check", "waiting.json.gz").code == 2
    assert "did you mean" in done.err and "not a report" not in done.err
